import type { Freshness } from '../domain/agent/license-snapshot.ts';
import type { OperationState } from '../domain/outbox/operation.ts';
import { problemCauses } from '../domain/problem/problem-causes.ts';
import { problems } from '../domain/problem/problem-table.ts';
import { problemTypePrefix } from '../domain/problem/problem.ts';
import { asSentence } from '../domain/text.ts';
import { adviceOn } from '../wire/findings.ts';
import { exitCode } from './exit-code.ts';

/** What a code of Latchkey means. `cause` and `remedy` are null if there is none. */
export interface Explanation {
  readonly kind: 'problem' | Kind;
  readonly name: string;
  /** The HTTP status and the `type` of a problem. */
  readonly status: number | null;
  readonly type: string | null;
  readonly title: string;
  readonly cause: string | null;
  readonly remedy: string | null;
}

type Kind = 'state' | 'freshness' | 'readiness' | 'status' | 'exit_code';

type Words = { title: string; remedy: string | null };

const states: Readonly<Record<OperationState | 'held', Words>> = {
  pending: { title: 'The change is waiting for its turn to be sent', remedy: null },
  in_flight: { title: 'The change is being sent right now', remedy: null },
  uncertain: {
    title: 'The change may have been applied: its answer was lost',
    remedy:
      'Wait: once the reconcile delay (sync.reconcile_after) has passed, the agent reads the key back to find out. A held change waits for you: look at the key in your store, then outbox confirm ID if it was applied there, outbox retry ID if it was not, or outbox drop ID to give it up.',
  },
  delivered: { title: 'The change was certainly applied', remedy: null },
  inferred: {
    title: 'The change was probably applied: something else could also explain the count',
    remedy: 'Nothing, unless one use more or less matters: then compare the count with your store.',
  },
  conflicted: {
    title: 'The change was not applied, because the upstream had changed in the meantime',
    remedy: 'Look at the key in your store, then outbox retry ID to send it anyway, or outbox drop ID.',
  },
  dead: {
    title: 'The change was not applied: the upstream refused it, or does not know its license key',
    remedy:
      'See why: outbox show ID. Once the cause is resolved, outbox retry ID; otherwise outbox drop ID. If its license key is found again, the change is sent by itself.',
  },
  cancelled: {
    title: 'The change was undone here or superseded by a later one, and was not sent',
    remedy: null,
  },
  dropped: { title: 'The change was given up by a person', remedy: null },
  held: {
    title: 'The change may have been applied: a person has to decide',
    remedy:
      'See what each decision would do: outbox show ID. Look at the key in your store, then outbox confirm ID, outbox retry ID or outbox drop ID.',
  },
};

const freshness: Readonly<Record<Freshness, Words>> = {
  fresh: { title: 'The store confirmed it within freshness.fresh (24 h by default)', remedy: null },
  stale: {
    title:
      'The store confirmed it within freshness.stale (7 days by default); the agent asks again in the background',
    remedy: null,
  },
  grace: {
    title:
      'The store confirmed it within freshness.grace (14 days by default); the agent asks again in the background',
    remedy:
      'Check whether the store can be reached: latchkey status. After Latchkey-Grace-Until, verify answers 503 verdict_expired.',
  },
  expired: {
    title: 'The store last confirmed it longer ago than freshness.grace: verify answers 503 verdict_expired',
    remedy: 'See why the store cannot be reached: latchkey status, latchkey doctor.',
  },
  authoritative: { title: 'This is the store itself: the answer is always current', remedy: null },
  provisional: { title: 'The store has not accepted it yet: it is only recorded here', remedy: null },
};

const readiness: Readonly<Record<string, Words>> = {
  store_damaged: {
    title: 'The database is damaged: changes are refused, and nothing is sent to the store',
    remedy: remedyFor('storage_damaged'),
  },
  upstream_down: {
    title: 'The store does not answer (reported only with ?require=fresh)',
    remedy: remedyFor('upstream_down'),
  },
  upstream_paused: {
    title: 'Sending to the store was paused (reported only with ?require=fresh)',
    remedy: remedyFor('sync_paused'),
  },
  upstream_unknown: {
    title: 'The store has not been asked since the start (reported only with ?require=fresh)',
    remedy: 'Wait for the first answer, or run latchkey sync now.',
  },
};

/** The members of an agent's status that report a pause. */
const statuses: Readonly<Record<string, Words>> = {
  paused_products: {
    title: 'The store refuses the secret of these products: their changes wait, and nothing is lost',
    remedy: remedyFor('secret_refused'),
  },
  coupons_paused: {
    title: 'The store refuses the API key: coupon changes wait, and nothing is lost',
    remedy: remedyFor('api_key_refused'),
  },
};

const exitCodes: Readonly<Record<number, Words>> = {
  [exitCode.done]: { title: 'Done, and the result is positive', remedy: null },
  [exitCode.failed]: {
    title: 'Refused by the daemon, failed, or the result is negative',
    remedy: 'Read the line on standard error; latchkey explain CODE explains a code in it.',
  },
  [exitCode.usage]: {
    title: 'The command line was not understood',
    remedy: 'See the --help of the command.',
  },
  [exitCode.unreachable]: {
    title: 'No daemon answers for this state directory',
    remedy:
      'Start it (latchkey serve, or systemctl start latchkey), or name the running one with --config or --state-dir.',
  },
  [exitCode.storageFailed]: {
    title: 'The daemon ended because its disk failed',
    remedy:
      'Check the disk and its file system. systemd restarts the daemon; nothing that was answered is lost.',
  },
  [exitCode.configuration]: {
    title: 'The configuration has errors',
    remedy:
      'latchkey config check lists them. systemd does not restart the daemon: start it when they are corrected.',
  },
};

function remedyFor(finding: string): string | null {
  const advice = adviceOn(finding, (words) => `latchkey ${words}`);
  return advice && asSentence(advice);
}

export const explanations: readonly Explanation[] = [
  ...Object.entries(problems).map(([name, { status, title, remedy }]): Explanation => ({
    kind: 'problem',
    name,
    status,
    type: `${problemTypePrefix}${name}`,
    title,
    cause: problemCauses[name as keyof typeof problems],
    remedy,
  })),
  ...explain('state', states),
  ...explain('freshness', freshness),
  ...explain('readiness', readiness),
  ...explain('status', statuses),
  ...explain('exit_code', exitCodes),
];

function explain(kind: Kind, words: Readonly<Record<string, Words>>): Explanation[] {
  return Object.entries(words).map(([name, said]) => ({
    kind,
    name,
    status: null,
    type: null,
    cause: null,
    ...said,
  }));
}
