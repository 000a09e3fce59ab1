/** A license key as the agent answers it (specification 2.2). */
export interface License {
  readonly licenseKey: string;
  /** The product that the key was sold for. */
  readonly productKey: string;
  readonly buyerEmail: string;
  readonly enabled: boolean;
  /** Uses counted so far, with those that the store has not confirmed yet. */
  readonly uses: number;
  /** The day of the purchase: trials are reckoned from it. */
  readonly date: Date;
}

/** How long ago the store confirmed what is answered (README, What happens offline); `authoritative`: it is the store's own. */
export type Freshness = 'authoritative' | 'fresh' | 'stale' | 'grace';

const known: ReadonlySet<Freshness> = new Set<Freshness>(['authoritative', 'fresh', 'stale', 'grace']);

/** What an answer is worth. */
export interface Provenance {
  readonly freshness: Freshness;
  /** When the store last confirmed the key; null: the program that answers is the store itself. */
  readonly confirmedAt: Date | null;
  /** Until when the key is answered without the store; null: the program that answers is the store itself. */
  readonly graceUntil: Date | null;
  /** Changes of the key that the store has not confirmed yet. */
  readonly pending: number;
}

/** A license after a change. */
export interface ChangedLicense extends Provenance {
  readonly license: License;
}

/** Reads the license of an answer; null when it is none. */
export function readAnsweredLicense(body: unknown): License | null {
  return readLicense(member(body, 'data'));
}

/** Reads a license as the specification writes it (2.2); null when it is none. */
export function readLicense(data: unknown): License | null {
  const [key, product, email] = ['license_key', 'product_link', 'buyer_email'].map((name) =>
    member(data, name),
  );
  const [enabled, uses, date] = ['enabled', 'uses', 'date'].map((name) => member(data, name));
  if (typeof key !== 'string' || typeof product !== 'string' || typeof email !== 'string') return null;
  if (typeof enabled !== 'boolean' || typeof uses !== 'number' || typeof date !== 'string') return null;
  const at = new Date(date);
  if (Number.isNaN(at.getTime())) return null;
  return { licenseKey: key, productKey: product, buyerEmail: email, enabled, uses, date: at };
}

/** Writes a license as the specification does (2.2). */
export function writeLicense({ licenseKey, productKey, buyerEmail, enabled, uses, date }: License): object {
  return {
    license_key: licenseKey,
    enabled,
    product_link: productKey,
    buyer_email: buyerEmail,
    uses,
    date: date.toISOString(),
  };
}

/** Reads what an answer is worth from its headers (`Latchkey-…`). */
export function readProvenance(headers: Readonly<Record<string, string | undefined>>): Provenance {
  const freshness = headers['latchkey-freshness'] as Freshness;
  return {
    freshness: known.has(freshness) ? freshness : 'grace',
    confirmedAt: readDate(headers['latchkey-confirmed-at']),
    graceUntil: readDate(headers['latchkey-grace-until']),
    pending: Number(headers['latchkey-pending'] ?? 0) || 0,
  };
}

function readDate(text: string | undefined): Date | null {
  const at = new Date(text ?? Number.NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}

/** A member of what may be an object. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
