import { freshnessAt, type FreshnessPolicy } from '../../domain/agent/freshness.ts';
import type { Provenance } from '../answers.ts';

/** `confirmedAt` is null for a coupon that the upstream has not seen yet. */
export type Source = { confirmedAt: number | null; pending: number; cache: 'hit' | 'miss' };

/** The provenance of a response at `now` (src/http/README.md, Agent headers). */
export function provenanceOf(
  { confirmedAt, pending, cache }: Source,
  policy: FreshnessPolicy,
  now: number,
): Provenance {
  if (confirmedAt === null) {
    return { freshness: 'provisional', confirmedAt, graceUntil: null, pending, cache, ageMs: 0 };
  }
  return {
    freshness: freshnessAt(confirmedAt, policy, now),
    confirmedAt,
    graceUntil: confirmedAt + policy.graceMs,
    pending,
    cache,
    ageMs: Math.max(0, now - confirmedAt),
  };
}
