import { countAfter, type License } from '../license.ts';
import { isHeld, type Operation } from '../outbox/operation.ts';
import type { Applied } from '../outbox/outcome.ts';

/** What the upstream last said of a license key, with the local changes on top. Times are epoch ms. */
export type LicenseSnapshot = {
  license: License;
  /** The license with the unfinished local changes: what a caller is answered. */
  local: LocalState;
  /** The id of the product (`Product`) under whose secret it was asked. */
  productKey: string;
  /** When the upstream vouched for it. */
  confirmedAt: number;
  /**
   * Which start of this process received it: a count seen before a restart is no base for sending. `noRun`: the count
   * is in question.
   */
  run: number;
  /** Other programs were seen to change `uses`. */
  manyWriters: boolean;
  /** Since when reads have been answered 404, without an answer in between (`Clock.elapsed`). */
  missingSince: number | null;
  /** Reads were answered so twice, far enough apart: the key does not exist any more. */
  gone: boolean;
  /** A write was answered 404, which alone proves nothing: the next step is a read. */
  readFirst: boolean;
  /** When a caller last asked for it. */
  askedAt: number;
  /** When to refresh it in the background (`Clock.elapsed`); null when callers no longer ask for it. */
  refreshAt: number | null;
};

/** The run of an snapshot whose count is in question: there is no start that counts from it. */
export const noRun = 0;

/**
 * Whether nobody can tell what the count of an snapshot contains: the next read shows it, and is no sign of another
 * writer, whatever it shows.
 */
export function isCountInQuestion({ run }: Pick<LicenseSnapshot, 'run'>): boolean {
  return run === noRun;
}

/** The members of a license that local changes move, and how many of those the upstream has not confirmed. */
export type LocalState = { uses: number; enabled: boolean; pending: number };

/** The license as a caller here sees it. */
export function localLicense({ license, local }: Pick<LicenseSnapshot, 'license' | 'local'>): License {
  return { ...license, uses: local.uses, enabled: local.enabled };
}

/**
 * What callers here see: the last confirmed `uses` with the unfinished changes applied one by one, and
 * the last confirmed `enabled` unless a disable waits. A waiting enable never shows.
 * Held operations are left out of the count: the count that was read may already contain them. A disable
 * that the upstream refused, or that a person must decide, still holds here.
 */
export function localState(license: License, operations: readonly Operation[]): LocalState {
  return operations.reduce<LocalState>(addLocalChange, {
    uses: Math.max(license.uses, 0),
    enabled: license.enabled,
    pending: 0,
  });
}

/** The local state with one more operation behind the others. */
export function addLocalChange(local: LocalState, operation: Operation): LocalState {
  const { kind, progress } = operation;
  const unfinished =
    progress.state === 'pending' || progress.state === 'in_flight' || progress.state === 'uncertain';
  const stands = unfinished || progress.state === 'dead' || progress.state === 'conflicted';
  const counts = unfinished && !isHeld(operation) && (kind === 'usage' || kind === 'decrease');
  return {
    uses: counts ? countAfter(local.uses, kind) : local.uses,
    enabled: local.enabled && !(stands && kind === 'disable'),
    pending: local.pending + (unfinished ? 1 : 0),
  };
}

/** How many operations of a key there are of each sort that `localState` tells apart. */
export type Backlog = {
  /** Uses and decreases that count: unfinished, not held. */
  usages: number;
  decreases: number;
  /** Disables that hold here. */
  disables: number;
  unfinished: number;
};

/** A key as it was seen before the first of its queue was answered, and what that one did to the count. */
export type SeenBefore = Pick<LicenseSnapshot, 'license' | 'local'> & { first: 1 | 0 | -1 };

/**
 * The same as `localState` by their numbers alone, so that a key with a long queue costs no more than
 * another. Null where the order of the operations matters: the count could touch 0 on the way.
 */
export function localStateByBacklog(
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
 * The count behind a queue that lost its first operation, where uses are taken and given back by turns: null, where
 * another writer has lowered the count, so that it may touch 0 only now.
 *
 * A queue makes of a count the greater of `count + sum` and of what it makes of 0, its floor: the greatest sum of any
 * part at its end. So a floor that stands above the sum of the whole stays without the first, and none ever rises.
 */
function usesBehindFirst(confirmed: number, sum: number, before: SeenBefore | null): number | null {
  if (before === null) return null;
  const shown = before.local.uses;
  if (confirmed + sum >= shown) return confirmed + sum;
  const wasFloor = shown > Math.max(before.license.uses, 0) + sum + before.first;
  return wasFloor ? shown : null;
}

/**
 * The snapshot after a read was answered 404 at `elapsed`; two such answers `goneMs` apart make the key gone. The time
 * between them is what passed, whatever the wall clock shows.
 */
export function observeMissing(snapshot: LicenseSnapshot, elapsed: number, goneMs: number): LicenseSnapshot {
  const missingSince = snapshot.missingSince ?? elapsed;
  const gone = snapshot.gone || elapsed - missingSince >= goneMs;
  return { ...snapshot, missingSince, gone, readFirst: false };
}

/** When a key is refreshed: `refresh` after its snapshot, ±20 %, as long as it was asked for within `grace`. */
export type RefreshPolicy = { refreshMs: number; graceMs: number };

/** What a read has brought: an answer, nothing, or that the key is gone. */
export type RefreshedAs = 'known' | 'unanswered' | 'gone';

/**
 * `LicenseSnapshot.refreshAt` after a read. One that failed is repeated after a tenth of the time; a key that is
 * gone is still read, rarely: it may come back.
 */
export function nextRefreshAt(
  { askedAt }: Pick<LicenseSnapshot, 'askedAt'>,
  { refreshMs, graceMs, goneMs }: RefreshPolicy & { goneMs: number },
  at: { now: number; elapsed: number; draw: number; readAs: RefreshedAs },
): number | null {
  if (at.now - askedAt > graceMs) return null;
  const jitter = 0.8 + 0.4 * at.draw;
  const intervalMs: Record<RefreshedAs, number> = {
    known: refreshMs,
    unanswered: refreshMs * 0.1,
    gone: Math.max(refreshMs, goneMs),
  };
  return at.elapsed + Math.max(1, Math.round(intervalMs[at.readAs] * jitter));
}

/**
 * What an answer of the upstream has brought: an agent that has something to deliver itself shows a key disabled also
 * while that is an enable, and nobody tells when it is delivered.
 */
export function readAsOf({ value, isPending }: Pick<Applied<License>, 'value' | 'isPending'>): RefreshedAs {
  return isPending === true && !value.enabled ? 'unanswered' : 'known';
}

/**
 * `LicenseSnapshot.refreshAt` after an answer to a change: what is planned stays, where it is neither too soon nor too
 * late, since to plan anew moves the key in an index.
 */
export function refreshAtAfterChange(
  snapshot: Pick<LicenseSnapshot, 'askedAt' | 'refreshAt'>,
  policy: RefreshPolicy & { goneMs: number },
  at: { now: number; elapsed: number; draw: number; readAs: RefreshedAs },
): number | null {
  const atDraw = (draw: number): number | null => nextRefreshAt(snapshot, policy, { ...at, draw });
  const [earliest, latest] = [atDraw(0), atDraw(1)];
  if (earliest === null || latest === null) return null;
  const { refreshAt } = snapshot;
  return refreshAt !== null && refreshAt >= earliest && refreshAt <= latest ? refreshAt : atDraw(at.draw);
}
