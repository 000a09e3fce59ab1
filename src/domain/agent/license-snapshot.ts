import { dayMs } from '../time.ts';
import type { License } from '../license.ts';
import { isHeld, isUnfinished, type Operation } from '../outbox/operation.ts';
import { usesAfter } from '../outbox/uses.ts';
import type { Applied } from '../outbox/outcome.ts';
import { asAnswered, statusEndsAt } from '../terms.ts';

/** The upstream's last response about a license key, plus the local changes. Times are epoch ms unless noted. */
export type LicenseSnapshot = {
  license: License;
  /** The license with the unfinished local changes, as callers see it. */
  local: LocalState;
  /** The id of the product (`Product`) whose secret the request to the upstream carried. */
  productId: string;
  /** When the upstream confirmed the license. */
  confirmedAt: number;
  /**
   * The process run that received the snapshot. A count from an earlier run must be read again before a use is sent.
   * `noRun` marks an uncertain count.
   */
  run: number;
  /** Other programs also change `uses`. */
  manyWriters: boolean;
  /** When reads began to be answered 404 (monotonic ms); null if the last read found the key. */
  missingSince: number | null;
  /** Two reads, far enough apart, were answered 404: the key no longer exists. */
  gone: boolean;
  /** A write was answered 404. A single 404 proves nothing, so the next step is a read. */
  readFirst: boolean;
  /** When a caller last asked for the key. */
  askedAt: number;
  /** When to refresh the snapshot in the background (monotonic ms); null when callers no longer ask for the key. */
  refreshAt: number | null;
  /** The number of the upstream's history that `license.revision` belongs to; absent or 0: the upstream is no Latchkey. */
  epoch?: number;
  /** Counted by the table: how often what callers see has changed, and that number when the key was last turned off. */
  localRevisions?: { revision: number; disabledRevision: number };
};

/** The `run` of a snapshot whose count is uncertain. No process run has this number. */
export const noRun = 0;

/** Whether the count is unreliable: accept any count from the next read, and do not suspect another writer. */
export function isCountUncertain({ run }: Pick<LicenseSnapshot, 'run'>): boolean {
  return run === noRun;
}

/** The members of a license that local changes modify, and how many changes the upstream has not confirmed. */
export type LocalState = { uses: number; enabled: boolean; pending: number };

/** The license as local callers see it. The revision is that of this agent. */
export function localLicense({
  license,
  local,
  localRevisions,
}: Pick<LicenseSnapshot, 'license' | 'local' | 'localRevisions'>): License {
  const { revision: _, ...members } = license;
  const { uses, enabled } = local;
  return {
    ...members,
    uses,
    enabled,
    ...(localRevisions !== undefined && { revision: localRevisions.revision }),
  };
}

/**
 * What local callers see: the last confirmed `uses` with the unfinished changes applied one by one, and the last
 * confirmed `enabled`, or false if a disable waits. A waiting enable has no effect yet.
 * The count leaves out held operations, because the confirmed count may already contain them. A disable stays in
 * effect locally even if the upstream refused it or a person must decide about it.
 */
export function localState(license: License, operations: readonly Operation[]): LocalState {
  return operations.reduce<LocalState>(addLocalChange, {
    uses: Math.max(license.uses, 0),
    enabled: license.enabled,
    pending: 0,
  });
}

/** The local state after one more operation. */
export function addLocalChange(local: LocalState, operation: Operation): LocalState {
  const { kind, progress } = operation;
  const unfinished = isUnfinished(operation);
  const stands = unfinished || progress.state === 'dead' || progress.state === 'conflicted';
  const counts = unfinished && !isHeld(operation) && (kind === 'usage' || kind === 'decrease');
  return {
    uses: counts ? usesAfter(local.uses, operation) : local.uses,
    enabled: local.enabled && !(stands && kind === 'disable'),
    pending: local.pending + (unfinished ? 1 : 0),
  };
}

/** The operations of a key, added up by their effect on `localState`. */
export type Backlog = {
  /** The sum of the unfinished uses, and the number of the unfinished decreases, that are not held. */
  usages: number;
  decreases: number;
  /** Disables that are in effect locally. */
  disables: number;
  unfinished: number;
};

/** A snapshot before the first operation of its queue was answered, and the effect of this operation on the count. */
export type SeenBefore = Pick<LicenseSnapshot, 'license' | 'local'> & { first: number };

/**
 * Computes `localState` from the sums of operations, so that a long queue costs no more than a short one. Returns
 * null if the order of the operations matters: the count could reach 0 in between.
 */
export function localStateFromBacklog(
  license: License,
  backlog: Backlog,
  before: SeenBefore | null,
): LocalState | null {
  const sum = backlog.usages - backlog.decreases;
  const confirmed = Math.max(license.uses, 0);
  const uses = backlog.decreases <= confirmed ? confirmed + sum : usesBehindFirst(confirmed, sum, before);
  if (uses === null) return null;
  return { uses, enabled: license.enabled && backlog.disables === 0, pending: backlog.unfinished };
}

/**
 * The count after a queue of uses and decreases that lost its first operation. Null if another writer has lowered the
 * count, because the count may now reach 0 in between.
 *
 * A queue turns a count into max(`count + sum`, floor). The floor is the result for a count of 0: the greatest sum of
 * any tail of the queue, where the empty tail has the sum 0. If the floor is above the sum of the whole queue, it is the
 * sum of a shorter tail, so it stays the same without the first operation. Without the first operation the floor never
 * rises.
 *
 * Example: the queue +1, -1, -1 turns the count 0 into 1, 0, 0. The sum of the queue is -1. Its tails have the sums -1,
 * -2, -1 and 0, so the floor is 0, and the result is max(0 - 1, 0) = 0. The upstream applies the +1 and confirms the
 * count 1. The remaining queue -1, -1 has the sum -2 and still the floor 0: the result is max(1 - 2, 0) = 0.
 */
function usesBehindFirst(confirmed: number, sum: number, before: SeenBefore | null): number | null {
  if (before === null) return null;
  const shown = before.local.uses;
  if (confirmed + sum >= shown) return confirmed + sum;
  const wasFloor = shown > Math.max(before.license.uses, 0) + sum + before.first;
  return wasFloor ? shown : null;
}

/**
 * The snapshot after a read was answered 404 at `monotonic`. Two such answers at least `goneMs` apart make the key gone.
 * `monotonic` is used because the wall clock may be changed.
 */
export function observeMissing(
  snapshot: LicenseSnapshot,
  monotonic: number,
  goneMs: number,
): LicenseSnapshot {
  const missingSince = snapshot.missingSince ?? monotonic;
  const gone = snapshot.gone || monotonic - missingSince >= goneMs;
  return { ...snapshot, missingSince, gone, readFirst: false };
}

/** A key is refreshed `refreshMs` after its snapshot, ±20 %, if a caller asked for it within `graceMs`. */
export type RefreshPolicy = { refreshMs: number; graceMs: number };

/** The result of a read. */
type ReadResult = 'known' | 'unanswered' | 'gone';

/**
 * `LicenseSnapshot.refreshAt` after a read. A failed read is repeated after a tenth of the time. A key that is gone is
 * still read now and then, because it may come back.
 */
export function nextRefreshAt(
  { askedAt }: Pick<LicenseSnapshot, 'askedAt'>,
  { refreshMs, graceMs, goneMs }: RefreshPolicy & { goneMs: number },
  at: { now: number; monotonic: number; fraction: number; readResult: ReadResult },
): number | null {
  if (at.now - askedAt > graceMs) return null;
  const jitter = 0.8 + 0.4 * at.fraction;
  const intervalMs: Record<ReadResult, number> = {
    known: refreshMs,
    unanswered: refreshMs * 0.1,
    gone: Math.max(refreshMs, goneMs),
  };
  return at.monotonic + Math.max(1, Math.round(intervalMs[at.readResult] * jitter));
}

/**
 * Whether an answer of the upstream is older than the snapshot: an upstream that is an agent says how old its knowledge
 * is, in whole seconds, and was perhaps restored.
 */
export function isOlderEvidence(
  confirmedAt: number,
  snapshot: Pick<LicenseSnapshot, 'confirmedAt'>,
): boolean {
  return confirmedAt < Math.floor(snapshot.confirmedAt / 1000) * 1000;
}

/** If the upstream is an agent with pending changes, "disabled" may be about to change: read again soon. */
export function readResultOf({
  value,
  isPending,
}: Pick<Applied<License>, 'value' | 'isPending'>): ReadResult {
  return isPending === true && !value.enabled ? 'unanswered' : 'known';
}

/**
 * `LicenseSnapshot.refreshAt` after an answer to a change. Keeps the planned refresh if it is within the jitter range,
 * because rescheduling rewrites an index entry.
 */
export function refreshAtAfterChange(
  snapshot: Pick<LicenseSnapshot, 'askedAt' | 'refreshAt'>,
  policy: RefreshPolicy & { goneMs: number },
  at: { now: number; monotonic: number; fraction: number; readResult: ReadResult },
): number | null {
  const withFraction = (fraction: number): number | null =>
    nextRefreshAt(snapshot, policy, { ...at, fraction });
  const [earliest, latest] = [withFraction(0), withFraction(1)];
  if (earliest === null || latest === null) return null;
  const { refreshAt } = snapshot;
  return refreshAt !== null && refreshAt >= earliest && refreshAt <= latest
    ? refreshAt
    : withFraction(at.fraction);
}

/**
 * The maximum ages of a fresh, a stale and a grace snapshot, and how long a license is valid after its end while the
 * upstream cannot say whether it was renewed, in ms (src/config/README.md, freshness).
 */
export type FreshnessPolicy = AgePolicy & { expiryGraceMs: number };

type AgePolicy = { freshMs: number; staleMs: number; graceMs: number };

/** The default of `freshness.fresh`, `stale`, `grace` and `expiry_grace`. */
export const defaultFreshnessPolicy: Readonly<FreshnessPolicy> = {
  freshMs: dayMs,
  staleMs: 7 * dayMs,
  graceMs: 14 * dayMs,
  expiryGraceMs: dayMs,
};

/** The values of `Latchkey-Freshness`. */
export type Freshness = 'authoritative' | 'fresh' | 'stale' | 'grace' | 'expired' | 'provisional';

/** The freshness at `now` of a snapshot from `confirmedAt`, both epoch ms. */
export function freshnessAt(
  confirmedAt: number,
  policy: AgePolicy,
  now: number,
): 'fresh' | 'stale' | 'grace' | 'expired' {
  const age = now - confirmedAt;
  if (age <= policy.freshMs) return 'fresh';
  if (age <= policy.staleMs) return 'stale';
  if (age <= policy.graceMs) return 'grace';
  return 'expired';
}

/** The last instant (epoch ms) at which a snapshot from `confirmedAt` still has this freshness. */
export function freshnessEndsAt(
  freshness: ReturnType<typeof freshnessAt>,
  confirmedAt: number,
  { freshMs, staleMs, graceMs }: AgePolicy,
): number {
  const ages = { fresh: freshMs, stale: staleMs, grace: graceMs, expired: Infinity };
  return confirmedAt + ages[freshness];
}

type WithEnd = Pick<LicenseSnapshot, 'license' | 'confirmedAt'>;

/**
 * The end, or the end of the grace, that comes next after the upstream has confirmed the license: behind it the license
 * may have been renewed. Infinity: none. An agent in the middle of a chain dates a confirmation in whole seconds, rounded
 * down, and ends are in whole seconds: a date that is the end comes after it.
 */
function unconfirmedEnd({ license: { expiresAt, graceUntil }, confirmedAt }: WithEnd): number {
  return [expiresAt, graceUntil].find((end) => confirmedAt < (end ?? -Infinity)) ?? Infinity;
}

/** Whether the license has ended, and may have been renewed since the upstream confirmed it. */
export function mayBeRenewed(snapshot: WithEnd, now: number): boolean {
  return now > unconfirmedEnd(snapshot);
}

/** The license as local callers see it at `now`: not enabled after its end, or after `expiryGraceMs` if it may be renewed. */
export function answeredLicense(
  snapshot: Pick<LicenseSnapshot, 'license' | 'local' | 'localRevisions' | 'confirmedAt'>,
  { expiryGraceMs }: Pick<FreshnessPolicy, 'expiryGraceMs'>,
  now: number,
): License {
  const end = unconfirmedEnd(snapshot);
  return asAnswered(localLicense(snapshot), now, end === Infinity ? -Infinity : end + expiryGraceMs);
}

/**
 * Until when a license is answered as valid without another word of the upstream (epoch ms), if it is valid now.
 */
export function validWithoutUpstreamUntil(
  { license, confirmedAt }: WithEnd,
  { graceMs, expiryGraceMs }: Pick<FreshnessPolicy, 'graceMs' | 'expiryGraceMs'>,
): number {
  const end = unconfirmedEnd({ license, confirmedAt });
  const known = license.graceUntil ?? license.expiresAt ?? Infinity;
  return Math.min(confirmedAt + graceMs, end === Infinity ? known : Math.max(known, end + expiryGraceMs));
}

/** How this process may answer a verify of a key now. */
export type Verdict =
  /** `asksFirst`: the upstream is asked first, because it may have renewed the license. */
  | { verdict: 'answer'; freshness: 'fresh' | 'stale' | 'grace' | 'expired'; asksFirst: boolean }
  /** Enabled, but confirmed too long ago. */
  | { verdict: 'expired' }
  /** The upstream answered 404 to two reads, far enough apart. */
  | { verdict: 'gone' }
  /** There is no snapshot of the key. */
  | { verdict: 'unknown' };

/** The verdict about a key. A key that is disabled or has ended is answered at any age. */
export function verdict(
  snapshot: Pick<LicenseSnapshot, 'license' | 'confirmedAt' | 'gone' | 'local'> | null,
  policy: FreshnessPolicy,
  now: number,
): Verdict {
  if (snapshot === null) return { verdict: 'unknown' };
  if (snapshot.gone) return { verdict: 'gone' };
  const freshness = freshnessAt(snapshot.confirmedAt, policy, now);
  if (freshness === 'expired' && answeredLicense(snapshot, policy, now).enabled)
    return { verdict: 'expired' };
  return { verdict: 'answer', freshness, asksFirst: snapshot.local.enabled && mayBeRenewed(snapshot, now) };
}

/** The last instant at which the license is answered as now without the upstream. */
export function answerEndsAt(
  { confirmedAt }: Pick<LicenseSnapshot, 'confirmedAt'>,
  answered: License,
  freshness: ReturnType<typeof freshnessAt>,
  policy: FreshnessPolicy,
): number {
  return Math.min(freshnessEndsAt(freshness, confirmedAt, policy), statusEndsAt(answered));
}
