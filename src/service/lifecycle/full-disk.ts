import type { UseCaseName } from '../writer.ts';

/*
 * What the loops have to write down, however full the disk is: a start, what the upstream has answered and
 * what follows from it, and what makes room. Changes that callers ask for are not among them.
 */
const essential: ReadonlySet<UseCaseName> = new Set<UseCaseName>([
  'startAuthority',
  'startAgent',
  'markTime',
  'pruneIdempotency',
  'pruneOperations',
  'planStep',
  'postpone',
  'endOutage',
  'recordAnswer',
  'recordRead',
  'keepRetryAfter',
  'recordCouponAnswer',
  'recordCouponListing',
  'bindUpstream',
  'keepAnswer',
]);

/** Whether a write is taken while the disk is full (src/sync/README.md, The store). */
export function isEssential(name: UseCaseName): boolean {
  return essential.has(name);
}
