import { countAfter, type License } from './license.ts';
import type { Operation } from './operation.ts';

/** What the upstream last said of a license key, and what this process makes of it. Times are epoch ms. */
export type Observation = {
  license: License;
  /** The license with the unfinished local changes: what a caller is answered. */
  local: LocalState;
  /** The configured product under whose secret it was asked. */
  productKey: string;
  /** When the upstream vouched for it. */
  confirmedAt: number;
  /** Which start of this process received it: a count seen before a restart is no base for sending. */
  boot: number;
  /** Other programs were seen to change `uses`. */
  manyWriters: boolean;
  /** Since when the upstream has answered 404, without an answer in between. */
  missingSince: number | null;
  /** It has said so twice, far enough apart: the key does not exist any more. */
  gone: boolean;
  /** Until when an attempt of a disable may still be on its way (`Clock.steady`): no enable is sent before. */
  lingersUntil: number | null;
  /** When a caller last asked for it. */
  askedAt: number;
  /** When it is to be asked for behind the callers (`Clock.steady`); null when nobody asks for it any more. */
  refreshAt: number | null;
};

/** The members of a license that local changes move, and how many of those the upstream has not confirmed. */
export type LocalState = { uses: number; enabled: boolean; pending: number };

/** The license as a caller here sees it. */
export function localLicense({ license, local }: Pick<Observation, 'license' | 'local'>): License {
  return { ...license, uses: local.uses, enabled: local.enabled };
}

/**
 * What callers here see: the last confirmed `uses` with the unfinished changes applied one by one, and
 * the last confirmed `enabled` unless a disable waits. A waiting enable never shows.
 * Held operations are left out of the count: their read-back may already contain them. A disable that
 * the upstream refused, or that a person must decide, still holds here.
 */
export function localState(license: License, operations: readonly Operation[]): LocalState {
  return operations.reduce<LocalState>(addLocalChange, {
    uses: Math.max(license.uses, 0),
    enabled: license.enabled,
    pending: 0,
  });
}

/** The local state with one more operation behind the others. */
export function addLocalChange(local: LocalState, { kind, progress }: Operation): LocalState {
  const unfinished =
    progress.state === 'pending' || progress.state === 'in_flight' || progress.state === 'uncertain';
  const held = progress.state === 'uncertain' && progress.held;
  const stands = unfinished || progress.state === 'dead' || progress.state === 'conflicted';
  const counts = unfinished && !held && (kind === 'usage' || kind === 'decrease');
  return {
    uses: counts ? countAfter(local.uses, kind) : local.uses,
    enabled: local.enabled && !(stands && kind === 'disable'),
    pending: local.pending + (unfinished ? 1 : 0),
  };
}

/** The observation after the upstream answered 404 at `now`; two such answers `goneMs` apart make the key gone. */
export function observeMissing(observation: Observation, now: number, goneMs: number): Observation {
  const missingSince = observation.missingSince ?? now;
  return { ...observation, missingSince, gone: observation.gone || now - missingSince >= goneMs };
}

/** When a key is refreshed: `refresh` after its observation, ±20 %, as long as it was asked for within `grace`. */
export type RefreshPolicy = { refreshMs: number; graceMs: number };

/** `Observation.refreshAt` after a read; one that failed is tried again after a tenth of the time. */
export function nextRefreshAt(
  { askedAt }: Pick<Observation, 'askedAt'>,
  { refreshMs, graceMs }: RefreshPolicy,
  at: { now: number; steady: number; draw: number; isKnown: boolean },
): number | null {
  if (at.now - askedAt > graceMs) return null;
  const waitMs = refreshMs * (0.8 + 0.4 * at.draw) * (at.isKnown ? 1 : 0.1);
  return at.steady + Math.max(1, Math.round(waitMs));
}
