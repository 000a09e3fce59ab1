import { freshnessAt, type FreshnessPolicy } from './freshness.ts';
import type { LicenseSnapshot } from './license-snapshot.ts';

/** What this process may say about a key now. */
export type Verdict =
  | { verdict: 'answer'; freshness: 'fresh' | 'stale' | 'grace' | 'expired' }
  /** Known and enabled, but too long ago. */
  | { verdict: 'expired' }
  /** The upstream has said twice that there is no such key. */
  | { verdict: 'gone' }
  /** Never observed. */
  | { verdict: 'unknown' };

/**
 * The verdict about a key: the age counts from the last authoritative snapshot; a disabled key is
 * answered at any age. That a key is gone is part of the snapshot: only answers can establish it.
 */
export function verdict(
  snapshot: Pick<LicenseSnapshot, 'confirmedAt' | 'gone' | 'local'> | null,
  policy: FreshnessPolicy,
  now: number,
): Verdict {
  if (snapshot === null) return { verdict: 'unknown' };
  if (snapshot.gone) return { verdict: 'gone' };
  const freshness = freshnessAt(snapshot.confirmedAt, policy, now);
  if (freshness === 'expired' && snapshot.local.enabled) return { verdict: 'expired' };
  return { verdict: 'answer', freshness };
}
