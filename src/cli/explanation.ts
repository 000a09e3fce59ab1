import type { Freshness } from '../domain/agent/freshness.ts';
import type { OperationState } from '../domain/outbox/operation.ts';
import { problemCauses } from '../domain/problem/problem-causes.ts';
import { problems } from '../domain/problem/problem-table.ts';
import { problemTypePrefix } from '../domain/problem/problem.ts';
import { exitCode } from './exit-code.ts';

/** What a word that Latchkey says means, for people; `cause` and `remedy` are null where there is nothing to tell. */
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
  pending: { title: 'The change waits for its turn to be sent', remedy: null },
  in_flight: { title: 'The change is being sent right now', remedy: null },
  uncertain: {
    title: 'The change may have been applied: its answer was lost',
    remedy:
      'Wait: it is read back when its fence has passed. One that is held waits for you: look at the key in your store, then outbox confirm ID if it was applied there, outbox retry ID if it was not, or outbox drop ID to give it up.',
  },
  delivered: { title: 'The change was applied, for certain', remedy: null },
  inferred: {
    title: 'The change was applied, as far as can be told: something else could explain the count as well',
    remedy: 'Nothing. Compare the count with your store where one use more or less matters.',
  },
  conflicted: {
    title: 'The change was not applied, because the upstream moved on',
    remedy: 'Look at the key in your store, then outbox retry ID to send it all the same, or outbox drop ID.',
  },
  dead: {
    title: 'The change was not applied: the upstream refused it, or does not know its license key',
    remedy:
      'See why: outbox show ID. When the reason is gone, outbox retry ID, else outbox drop ID. One whose key is known again goes on by itself.',
  },
  cancelled: {
    title: 'The change was undone here, or overtaken by a later one: it was not sent',
    remedy: null,
  },
  dropped: { title: 'The change was given up by a person', remedy: null },
  held: {
    title: 'The change may have been applied, and waits for a person to decide',
    remedy:
      'See what each decision would do: outbox show ID. Look at the key in your store, then outbox confirm ID, outbox retry ID or outbox drop ID.',
  },
};

const freshness: Readonly<Record<Freshness, Words>> = {
  fresh: { title: 'The store said so within freshness.fresh (24 h by default)', remedy: null },
  stale: {
    title:
      'The store said so within freshness.stale (7 days by default); the agent asks again behind the answer',
    remedy: null,
  },
  grace: {
    title:
      'The store said so within freshness.grace (14 days by default); the agent asks again behind the answer',
    remedy:
      'See whether the store is away: latchkey status. After Latchkey-Grace-Until verify answers 503 verdict_expired.',
  },
  expired: {
    title: 'The store said so longer ago than freshness.grace: verify answers 503 verdict_expired',
    remedy: 'See why the store is away: latchkey status, latchkey doctor.',
  },
  authoritative: { title: 'This is the store itself: nothing is older than the answer', remedy: null },
  provisional: { title: 'The store has not taken it yet: it is only recorded here', remedy: null },
};

const readiness: Readonly<Record<string, Words>> = {
  store_damaged: {
    title: 'The database is damaged: changes are refused, and nothing goes up',
    remedy: 'Stop the daemon, latchkey restore FILE, and start it again.',
  },
  upstream_down: {
    title: 'The store does not answer (asked for by ?require=fresh)',
    remedy: 'See why: latchkey status, latchkey doctor. What is recorded waits, and goes up by itself.',
  },
  upstream_paused: {
    title: 'What goes up was paused (asked for by ?require=fresh)',
    remedy: 'latchkey sync resume',
  },
  upstream_unknown: {
    title: 'The store was not asked yet since the start (asked for by ?require=fresh)',
    remedy: 'Wait for the first answer, or latchkey sync now.',
  },
};

/** What an agent is held up by, by the members of its status. */
const statuses: Readonly<Record<string, Words>> = {
  paused_products: {
    title: 'The store refuses the secret of these products: their changes wait, and nothing is lost',
    remedy:
      'Put the right secret into the configuration and reload, or latchkey sync resume if it was right all along.',
  },
  coupons_paused: {
    title: 'The store refuses the API key: changes of coupons wait, and nothing is lost',
    remedy:
      'Put the right upstream.api_key into the configuration and reload, or latchkey sync resume if it was right all along.',
  },
};

const exitCodes: Readonly<Record<number, Words>> = {
  [exitCode.done]: { title: 'Done, and the answer is yes', remedy: null },
  [exitCode.failed]: {
    title: 'Refused by the daemon, failed, or the answer is no',
    remedy: 'Read the line on standard error; a code in it is explained by latchkey explain CODE.',
  },
  [exitCode.usage]: {
    title: 'The command line was not understood',
    remedy: 'See the --help of the command.',
  },
  [exitCode.unreachable]: {
    title: 'No daemon of this state directory answers',
    remedy:
      'Start it (latchkey serve, systemctl start latchkey), or name the one that runs by --config or --state-dir.',
  },
  [exitCode.storageFailed]: {
    title: 'The daemon ended, because its disk failed',
    remedy:
      'Look at the disk and its file system. systemd starts the daemon again; nothing answered is lost.',
  },
  [exitCode.configuration]: {
    title: 'The configuration has faults',
    remedy: 'latchkey config check names each of them. systemd does not try again before it is mended.',
  },
};

/** Everything that can be explained: problems, states of a change, how fresh an answer is, reasons of `/readyz`, members of the status, exit codes. */
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
