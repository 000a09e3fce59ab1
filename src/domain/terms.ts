/*
 * The terms of a license: until when it is valid, how often it may be used, what it unlocks. All of them are optional.
 */

/** The end of a license and the limit of its uses. Times are epoch ms in whole seconds. Absent or null: none. */
export type LicenseEnd = {
  /** The last instant at which the license is valid. */
  expiresAt?: number | null;
  /** Until when it is answered as valid after `expiresAt`, if its product has an `expiry_grace`. */
  graceUntil?: number | null;
  /** A use beyond it is refused. */
  usesLimit?: number | null;
};

/** The other terms of a license. There is at least one. */
export type LicenseTerms = {
  /** What the license unlocks: at most 50 short words, sorted. */
  entitlements?: readonly string[];
  /** An object of the seller, at most 4 KiB as JSON. */
  metadata?: Readonly<Record<string, unknown>>;
  /** In place of those of the product. */
  seats?: number;
  leaseHoldMs?: number;
  leaseTermMs?: number;
  leaseRefreshMs?: number;
};

export const maxEntitlements = 50;
/** In characters. */
export const maxEntitlementLength = 40;
export const maxMetadataBytes: number = 4 * 1024;

/** Whether an object can be stored as `metadata`. */
export function isMetadata(value: object): boolean {
  try {
    const json = JSON.stringify(value);
    return (
      Buffer.byteLength(json) <= maxMetadataBytes && json.isWellFormed() && !json.includes(String.raw`\u0000`)
    );
  } catch {
    // It is nested too deeply.
    return false;
  }
}

/** How a license with terms stands: `grace`: it has ended, and is still answered as valid. */
export const licenseStatuses = ['active', 'grace', 'expired', 'disabled'] as const;

export type LicenseStatus = (typeof licenseStatuses)[number];

type WithEnd = LicenseEnd & { enabled: boolean };
type WithTerms = WithEnd & { terms?: LicenseTerms | null; status?: LicenseStatus };

/** A license without terms. Spread over another one, it removes its terms. */
export const noTerms = { expiresAt: null, graceUntil: null, usesLimit: null, terms: null } as const;

export function hasTerms({ expiresAt, usesLimit, terms }: Omit<WithTerms, 'enabled'>): boolean {
  return (expiresAt ?? usesLimit ?? terms ?? null) !== null;
}

/** How a license stands at `now`. `validUntil`: it is answered as valid until then in any case. */
export function statusAt(
  { enabled, expiresAt, graceUntil }: WithEnd,
  now: number,
  validUntil: number = -Infinity,
): LicenseStatus {
  if (!enabled) return 'disabled';
  if ((expiresAt ?? null) === null || now <= (expiresAt ?? 0)) return 'active';
  return now <= Math.max(graceUntil ?? expiresAt ?? 0, validUntil) ? 'grace' : 'expired';
}

/** The license with its status, and `enabled` as the seller has set it. A license without terms has no status. */
export function withStatus<License extends WithTerms>(license: License, now: number): License {
  return hasTerms(license) ? { ...license, status: statusAt(license, now) } : license;
}

/** The license as a verify answers it: not enabled after its end. */
export function asAnswered<License extends WithTerms>(
  license: License,
  now: number,
  validUntil?: number,
): License {
  if (!hasTerms(license)) return license;
  const status = statusAt(license, now, validUntil);
  return { ...license, enabled: status === 'active' || status === 'grace', status };
}

/** The last instant at which an answered license still has its status. */
export function statusEndsAt({ status, expiresAt, graceUntil }: WithTerms): number {
  if (status === 'active') return expiresAt ?? Infinity;
  return status === 'grace' ? (graceUntil ?? expiresAt ?? Infinity) : Infinity;
}

/** Whether a license may not be used so often. */
export function isAboveLimit(uses: number, { usesLimit }: LicenseEnd): boolean {
  return uses > (usesLimit ?? Infinity);
}

/** New values of terms; undefined: as before; null: none. */
export type TermsChange = {
  expiresAt?: number | null | undefined;
  usesLimit?: number | null | undefined;
} & { [Name in keyof LicenseTerms]?: LicenseTerms[Name] | null | undefined };

/** All terms after a change. `graceMs`: the `expiry_grace` of the product. */
export function changedTerms(
  before: Pick<WithTerms, 'expiresAt' | 'usesLimit' | 'terms'>,
  { expiresAt = before.expiresAt ?? null, usesLimit = before.usesLimit ?? null, ...others }: TermsChange,
  graceMs: number,
): Required<LicenseEnd> & { terms: LicenseTerms | null } {
  const sent = Object.entries(others).filter(([, value]) => value !== undefined);
  const all = Object.entries<unknown>({ ...before.terms, ...Object.fromEntries(sent) });
  // An empty list or object is none, too.
  const isEmpty = (value: unknown): boolean =>
    typeof value !== 'number' && Object.keys(value ?? {}).length === 0;
  const terms: LicenseTerms = Object.fromEntries(all.filter(([, value]) => !isEmpty(value)));
  return {
    expiresAt,
    graceUntil: expiresAt !== null && graceMs > 0 ? expiresAt + graceMs : null,
    usesLimit,
    terms: Object.keys(terms).length === 0 ? null : terms,
  };
}
