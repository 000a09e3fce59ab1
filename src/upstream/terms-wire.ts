import { z } from 'zod';
import type { License } from '../domain/license.ts';
import {
  isMetadata,
  licenseStatuses,
  maxEntitlementLength,
  maxEntitlements,
  type LicenseTerms,
} from '../domain/terms.ts';
import { parseDatetime } from '../domain/time.ts';

const date = z.string().transform(parseDatetime).nullish().catch(null);
const count = z.int().nonnegative().optional().catch(undefined);

/** The members in which a Latchkey describes the terms of a license. What cannot be read is left out. */
const members = z.object({
  status: z.enum(licenseStatuses),
  expires_at: date,
  grace_until: date,
  uses_limit: count,
  entitlements: z
    .array(z.string().max(maxEntitlementLength))
    .max(maxEntitlements)
    .optional()
    .catch(undefined),
  metadata: z.record(z.string(), z.unknown()).refine(isMetadata).optional().catch(undefined),
  seats: count,
  lease_hold_s: count,
  lease_term_s: count,
  lease_refresh_s: count,
});

type Read = Pick<License, 'enabled' | 'expiresAt' | 'graceUntil' | 'usesLimit' | 'terms'>;

/**
 * Splits the members of a license into its terms and the others; null: it has no terms. After its end a license is answered
 * as not enabled: then its status tells that its seller has not disabled it. A license whose end cannot be read stays
 * disabled, because it would be valid for ever.
 */
export function readTerms(
  enabled: boolean,
  sent: Readonly<Record<string, unknown>>,
): { terms: Read; others: Readonly<Record<string, unknown>> } | null {
  const parsed = members.safeParse(sent);
  if (!parsed.success) return null;
  const {
    status,
    expires_at,
    grace_until,
    uses_limit,
    lease_hold_s,
    lease_term_s,
    lease_refresh_s,
    ...same
  } = parsed.data;
  const leaseMs = { leaseHoldMs: lease_hold_s, leaseTermMs: lease_term_s, leaseRefreshMs: lease_refresh_s };
  const inMs = Object.entries(leaseMs).map(([name, seconds]) => [name, seconds && seconds * 1000]);
  const given = Object.entries({ ...same, ...Object.fromEntries(inMs) }).filter(
    ([, value]) => value !== undefined,
  );
  const terms: LicenseTerms | null = given.length === 0 ? null : Object.fromEntries(given);
  const others = Object.entries(sent).filter(([name]) => !Object.hasOwn(members.shape, name));
  return {
    terms: {
      enabled: enabled || (status === 'expired' && (expires_at ?? null) !== null),
      expiresAt: expires_at ?? null,
      graceUntil: grace_until ?? null,
      usesLimit: uses_limit ?? null,
      terms,
    },
    others: Object.fromEntries(others),
  };
}
