import { fail, type Finding, ok, warn } from '../../config/finding.ts';
import { clockAdvice, counted, describeClock } from '../../domain/text.ts';
import type { StatusObject, StoreEventsObject } from '../../wire/status.ts';
import type { UpstreamObject } from '../../wire/server/upstream.ts';
import { examineFollowing } from '../../features/following/daemon/examine-following.ts';

type Hint = (words: string) => string;

/** `reasons`: those of `/readyz`. */
export function examineReadiness(
  { isReady, reasons }: { isReady: boolean; reasons: readonly string[] },
  hint: Hint,
): Finding {
  return isReady
    ? ok('the daemon is ready')
    : fail(`the daemon is not ready: ${reasons.join(', ')}`, adviceFor(reasons, hint));
}

function adviceFor(reasons: readonly string[], hint: Hint): string {
  if (reasons.includes('store_damaged'))
    return `stop it, restore a backup with ${hint('restore FILE')}, and start it again`;
  return reasons.some((reason) => reason.startsWith('storage_'))
    ? 'see the findings on the database below, and the log of the daemon'
    : 'wait, or check its log';
}

function examineClock({ suspect, store_ahead_s: aheadS }: StatusObject['clock']): Finding[] {
  const aheadMs = aheadS === null ? null : aheadS * 1000;
  return suspect ? [fail(describeClock(aheadMs), clockAdvice(aheadMs))] : [];
}

/** What the status of a running daemon says. */
export function examineStatus(status: StatusObject, hint: Hint): Finding[] {
  const { listeners, upstream, outbox, clock, storage, store_events: events } = status;
  const waiting = outbox === null ? 0 : outbox.conflicted + outbox.dead + outbox.held;
  return [
    ...(storage === 'full'
      ? [fail('the disk of the store is full: changes are refused', 'free some space on it')]
      : []),
    ...(storage === 'read_only'
      ? [fail('the database is read-only: changes are refused', 'see the findings on it below')]
      : []),
    ...listeners.lost.map((path) =>
      fail(
        `the socket ${path} was removed and cannot be created again: connections to it fail`,
        'create its directory again, or restart the daemon; see its log',
      ),
    ),
    ...examineClock(clock),
    ...(waiting > 0
      ? [
          warn(
            `${counted(waiting, 'change waits', 'changes wait')} for a person`,
            `see: ${hint('outbox list')}`,
          ),
        ]
      : []),
    ...(upstream?.state === 'down'
      ? [warn(`the upstream has been unavailable since ${upstream.since}`, 'see the findings on it below')]
      : []),
    ...(upstream?.state === 'paused' ? [warn('sync is paused', hint('sync resume'))] : []),
    ...(upstream === null ? [] : examineUpstream(upstream, hint)),
    ...examineMissing(status.missing_keys ?? null, hint),
    ...(events?.senders ?? []).map(examineSender),
    ...examineWebhooks(status.webhooks, hint),
  ];
}

function examineMissing(missing: NonNullable<StatusObject['missing_keys']> | null, hint: Hint): Finding[] {
  if (missing === null) return [];
  const { text, advice } = describeMissing(missing);
  return [warn(text, `${advice}; see: ${hint('license list')}`)];
}

/** What the doctor and the overview of the console say about license keys that the store no longer knows. */
export function describeMissing({ count, since }: NonNullable<StatusObject['missing_keys']>): {
  text: string;
  advice: string;
} {
  return {
    text: `the store has answered 404 since ${since} for ${counted(count, 'license key')} that it knew: they are refused after freshness.gone`,
    advice:
      'if they were not deleted there, compare the secrets and products of the configuration with the store',
  };
}

function examineUpstream(upstream: UpstreamObject, hint: Hint): Finding[] {
  const refused = upstream.paused_products.map((product) =>
    fail(
      `the upstream refuses the secret of the product ${product} (401 or 403): its changes wait`,
      `put the right secret into the configuration and reload, or: ${hint('sync resume')}`,
    ),
  );
  const silent = examineFollowing(upstream).map(({ text, advice }) => warn(inLine(text), inLine(advice)));
  return [...refused, ...silent];
}

/** A sentence as a part of a line. */
function inLine(sentence: string): string {
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1).replace(/\.$/, '')}`;
}

function examineWebhooks(webhooks: StatusObject['webhooks'], hint: Hint): Finding[] {
  const { paused = 0, failing = 0 } = webhooks ?? {};
  const advice = `see: ${hint('webhook list')}`;
  const waiting = counted(failing, 'failing webhook endpoint');
  const stopped = counted(paused, 'paused webhook endpoint');
  return [
    ...(paused > 0 ? [fail(`${stopped}: events wait, and are removed after 30 days`, advice)] : []),
    ...(failing > 0 ? [warn(`${waiting}: events wait`, advice)] : []),
  ];
}

/** The last event counts: a wrong signature before it may have been that of somebody else. */
function examineSender(sender: StoreEventsObject['senders'][number]): Finding {
  const { name, from, last_event_at: at, last_refused_at: refusedAt, last_refusal: refusal } = sender;
  const key = `webhooks.in.${name}`;
  if (refusedAt !== null && (at === null || Date.parse(refusedAt) > Date.parse(at))) {
    return refusal === 'wrong_signature'
      ? warn(
          `the last event for ${key} had a wrong signature, at ${refusedAt}: it was ignored`,
          `compare the secret of ${key} with that of the store (${from})`,
        )
      : warn(
          `the last event for ${key} could not be read, at ${refusedAt}: it was ignored`,
          `check that ${key}.from (${from}) is the store that sends the events`,
        );
  }
  return ok(
    at === null ? `${key} has received no event since the start` : `${key} received its last event at ${at}`,
  );
}
