/** The maximum ages of a fresh, a stale and a grace snapshot, in ms (src/config/README.md, freshness). */
export type FreshnessPolicy = { freshMs: number; staleMs: number; graceMs: number };

const dayMs = 86_400_000;

/** The default of `freshness.fresh`, `stale` and `grace`. */
export const defaultFreshnessPolicy: Readonly<FreshnessPolicy> = {
  freshMs: dayMs,
  staleMs: 7 * dayMs,
  graceMs: 14 * dayMs,
};

/** The values of `Latchkey-Freshness`. */
export type Freshness = 'authoritative' | 'fresh' | 'stale' | 'grace' | 'expired' | 'provisional';

/** The freshness at `now` of a snapshot from `confirmedAt`, both epoch ms. */
export function freshnessAt(
  confirmedAt: number,
  policy: FreshnessPolicy,
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
  { freshMs, staleMs, graceMs }: FreshnessPolicy,
): number {
  const ages = { fresh: freshMs, stale: staleMs, grace: graceMs, expired: Infinity };
  return confirmedAt + ages[freshness];
}
