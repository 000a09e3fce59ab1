import type { UseCaseName } from '../writer.ts';

/*
 * These writes run even if the disk is full: startup, recording upstream responses, and clean-up. Changes that callers
 * request are refused.
 */
const essential: ReadonlySet<UseCaseName> = new Set<UseCaseName>([
  'startAuthority',
  'startAgent',
  'markTime',
  'pruneIdempotency',
  'pruneOperations',
  'pruneHistory',
  'pruneOldCredentials',
  'planStep',
  'postpone',
  'endOutage',
  'recordResponse',
  'recordRead',
  'keepRetryAfter',
  'recordCouponResponse',
  'recordCouponListing',
  'bindUpstream',
  'keepResponse',
]);

/** Whether a write is accepted while the disk is full (src/sync/README.md, The store). */
export function isEssential(name: UseCaseName): boolean {
  return essential.has(name);
}
