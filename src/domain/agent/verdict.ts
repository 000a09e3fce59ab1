import { freshnessAt, type FreshnessPolicy } from './freshness.ts';
import type { LicenseSnapshot } from './license-snapshot.ts';

/** How this process may answer a verify of a key now. */
export type Verdict =
  | { verdict: 'answer'; freshness: 'fresh' | 'stale' | 'grace' | 'expired' }
  /** Enabled, but confirmed too long ago. */
  | { verdict: 'expired' }
  /** The upstream answered 404 to two reads, far enough apart. */
  | { verdict: 'gone' }
  /** There is no snapshot of the key. */
  | { verdict: 'unknown' };

/** The verdict about a key. A disabled key is answered at any age. */
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
