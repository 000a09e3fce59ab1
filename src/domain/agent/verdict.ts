import { freshnessAt, type FreshnessPolicy } from './freshness.ts';
import type { Observation } from './observation.ts';

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
 * The verdict about a key: the age counts from the last authoritative observation; a disabled key is
 * answered at any age. That a key is gone is part of the observation: only answers can establish it.
 */
export function verdict(
  observation: Pick<Observation, 'confirmedAt' | 'gone' | 'local'> | null,
  policy: FreshnessPolicy,
  now: number,
): Verdict {
  if (observation === null) return { verdict: 'unknown' };
  if (observation.gone) return { verdict: 'gone' };
  const freshness = freshnessAt(observation.confirmedAt, policy, now);
  if (freshness === 'expired' && observation.local.enabled) return { verdict: 'expired' };
  return { verdict: 'answer', freshness };
}
