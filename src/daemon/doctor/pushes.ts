import { counted } from '../../domain/text.ts';
import { dayMs } from '../../domain/time.ts';
import type { UpstreamObject } from '../../wire/server/upstream.ts';

/** A condition that the doctor and the overview of the console report. Texts are sentences. */
export type Condition = {
  code: string;
  level: 'warn' | 'fail';
  text: string;
  advice: string;
  /** Without `latchkey`; null: there is none. */
  command: string | null;
  page: string | null;
};

/** `/sync/v1` may be silent for so long while the upstream answers other requests, in ms. */
const silentMs = 5 * 60_000;
/** For how long a conflict is reported. */
const conflictShownMs = 7 * dayMs;

/** What is wrong with the pushes of an agent to another Latchkey. `now`: epoch ms. */
export function examinePushes(upstream: UpstreamObject, now: number): Condition[] {
  return [
    ...(upstream.protocol === 'latchkey' && upstream.state !== 'paused' ? silence(upstream) : []),
    ...conflict(upstream, now),
    ...upstream.pushes.flatMap(loss),
  ];
}

/** A gateway may hide `/sync/v1`, or another store may have taken the place of the Latchkey. */
function silence({ pushes, paused_products: paused, last_success_at: success }: UpstreamObject): Condition[] {
  const silent = pushes.filter(
    ({ product_key: product, confirmed_at: at }) =>
      product !== null &&
      !paused.includes(product) &&
      at !== null &&
      success !== null &&
      Date.parse(success) - Date.parse(at) > silentMs,
  );
  const [since] = silent.flatMap(({ confirmed_at: at }) => at ?? []).toSorted();
  if (since === undefined) return [];
  return [
    {
      code: 'sync_silent',
      level: 'fail',
      text: `The upstream answers, but not at /sync/v1 since ${since}: no change is delivered.`,
      advice:
        'Let what is in front of the upstream pass /sync/v1 on. Changes wait: none goes the plain way, where it could count twice. If the upstream is no longer a Latchkey, run: latchkey sync protocol plain',
      command: 'doctor',
      page: null,
    },
  ];
}

function conflict({ conflict_at: at }: UpstreamObject, now: number): Condition[] {
  if (at === null || now - Date.parse(at) > conflictShownMs) return [];
  return [
    {
      code: 'sync_conflict',
      level: 'warn',
      text: `The upstream knew pushes that this state directory does not have, at ${at}: a copy of it has run elsewhere, or an older copy was put back.`,
      advice:
        'Run each state directory on one machine only, and use latchkey restore for backups. This agent has asked the upstream about each change. Changes that the upstream no longer knows wait for you.',
      command: 'outbox list',
      page: 'outbox',
    },
  ];
}

function loss({ product_key: product, lost }: UpstreamObject['pushes'][number]): Condition[] {
  if (lost === null) return [];
  const days = [lost.first_at, lost.last_at].map((at) => at.slice(0, 10)).join(' to ');
  return [
    {
      code: 'changes_lost',
      level: 'fail',
      text: `The upstream was restored, and has lost up to ${counted(lost.operations, 'change')} of ${product === null ? 'coupons' : `the product ${product}`} from ${days}, which are too old to be sent again.`,
      advice: 'Compare the counts of the license keys that were used on these days with your own records.',
      command: 'status',
      page: null,
    },
  ];
}
