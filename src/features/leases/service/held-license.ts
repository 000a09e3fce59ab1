import type { Tenant } from '../../../domain/access/principal.ts';
import { heldVerdict, pendingUses } from '../domain/held-lease.ts';
import type { HeldLease } from '../domain/lease.ts';
import { done, failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { hasStoredResponse } from '../../../service/idempotency.ts';
import type { Clock } from '../../../service/ports.ts';
import type {
  CacheableResponse,
  LicenseChangeRequest,
  LicenseHistory,
  LicenseResponse,
  LicenseService,
} from '../../../service/services.ts';
import type { HistoryPage, Reader } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import { hourMs } from '../../../domain/time.ts';

/** `productKey`: null if the caller names none. */
type Named = { licenseKey: string; productKey: string | null };

/** The leases behind the license API of a holder. */
export interface HeldLicenses {
  /** The row of a license key of a product that is served here. */
  find(named: Named): HeldLease | null;
  /** A row that can be answered from. Asks the issuer if there is none, and takes a seat if that is allowed. */
  obtain(named: Named, signal: AbortSignal): Promise<Result<HeldLease>>;
  /** Asks the issuer again soon for a disabled license. */
  refresh(licenseKey: string): void;
  /** Call it when a use was counted. */
  counted(licenseKey: string): void;
  /** Waits until the issuer has confirmed the uses, for at most `waitMs`. */
  confirm(licenseKey: string, waitMs: number, signal: AbortSignal): Promise<void>;
}

export type HeldLicenseParts = {
  reader: Reader;
  writer: Writer;
  clock: Pick<Clock, 'now'>;
  leases: HeldLicenses;
  /** The keys of the configured products. */
  productKeys: () => readonly string[];
};

/** A holder answers from its leases, and counts uses here at once and at the issuer later. */
export function heldLicenseService(parts: HeldLicenseParts): LicenseService {
  return {
    verify: async ({ productKey }, licenseKey, signal) => {
      const isHeld = parts.leases.find({ licenseKey, productKey }) !== null;
      const obtained = await parts.leases.obtain({ licenseKey, productKey }, signal);
      if (!obtained.ok) return endedResponse(parts, obtained, { licenseKey, productKey });
      const response = responseOf(parts, obtained.value, isHeld ? 'hit' : 'miss');
      response?.cacheable.onServed();
      return response === null ? expired() : done(response);
    },
    verifyNow: ({ productKey }, licenseKey) => {
      const held = parts.leases.find({ licenseKey, productKey });
      return held === null ? null : responseOf(parts, held, 'hit');
    },
    change: (request, signal) => change(parts, request, signal),
    history: (tenant, licenseKey, page) => Promise.resolve(historyOf(parts, { tenant, licenseKey }, page)),
  };
}

/** Null if the lease has expired, or there is none. */
function responseOf(
  parts: HeldLicenseParts,
  held: HeldLease,
  cache: 'hit' | 'miss',
): CacheableResponse | null {
  const now = parts.clock.now();
  const found = heldVerdict(held, now);
  const { document, productKey, licenseKey } = held;
  if (found.verdict !== 'answer' || document === null) return null;
  const { license, freshness, until } = found;
  const isLease = document.kind === 'lease';
  const onServed = isLease ? nothing : () => parts.leases.refresh(licenseKey);
  return {
    license,
    productKey,
    provenance: {
      freshness,
      confirmedAt: document.issuedAt,
      graceUntil: isLease ? document.expiresAt : null,
      pending: pendingUses(held),
      cache,
      ageMs: Math.max(0, now - document.issuedAt),
    },
    cacheable: { since: now, until: Math.min(until, now + maxCachedMs), onServed },
  };
}

/** A license that has ended is answered although the issuer is away: it is not enabled. */
function endedResponse(
  { leases, clock }: HeldLicenseParts,
  refused: Result<never>,
  named: Named,
): Result<LicenseResponse> {
  const held = refused.ok || refused.problem.code !== 'license_expired' ? null : leases.find(named);
  const now = clock.now();
  const found = held === null ? null : heldVerdict(held, now);
  if (held?.document?.kind !== 'lease' || found?.verdict !== 'expired' || found.ended === null)
    return refused;
  const { issuedAt: confirmedAt, expiresAt: graceUntil } = held.document;
  const ageMs = Math.max(0, now - confirmedAt);
  const pending = pendingUses(held);
  return done({
    license: found.ended,
    productKey: held.productKey,
    provenance: { freshness: 'expired', confirmedAt, graceUntil, pending, cache: 'hit', ageMs },
  });
}

/** In ms. A clock that jumps must not keep a response for ever. */
const maxCachedMs = hourMs;

const nothing = (): void => undefined;

async function change(
  parts: HeldLicenseParts,
  request: LicenseChangeRequest,
  signal: AbortSignal,
): Promise<Result<LicenseResponse>> {
  const { tenant, trigger, actor, requestId = null, idempotency, waitMs } = request;
  if (trigger === 'enable' || trigger === 'disable') {
    return failWith('scope_missing', 'A holder cannot enable or disable license keys: only the vendor can.');
  }
  const named = { licenseKey: request.licenseKey, productKey: tenant.productKey };
  if (!hasStoredResponse(parts.reader, idempotency)) {
    const obtained = await parts.leases.obtain(named, signal);
    if (!obtained.ok) return obtained;
  }
  const licenseKey = parts.leases.find(named)?.licenseKey ?? request.licenseKey;
  const productKeys = parts.productKeys();
  const counted = await parts.writer.write(
    'countHeldUse',
    { licenseKey, productKeys, trigger },
    { actor, requestId, idempotency },
  );
  if (!counted.ok) return counted;
  if (counted.unchanged !== true) parts.leases.counted(licenseKey);
  if (waitMs > 0) await parts.leases.confirm(licenseKey, waitMs, signal);
  const held = waitMs > 0 ? (parts.leases.find(named) ?? counted.value) : counted.value;
  const response = responseOf(parts, held, 'hit');
  if (response === null) return expired();
  const { cacheable: _, ...changed } = response;
  return done(changed);
}

function historyOf(
  { reader, leases }: HeldLicenseParts,
  { tenant, licenseKey }: { tenant: Tenant | null; licenseKey: string },
  page: HistoryPage,
): Result<LicenseHistory> {
  const held = leases.find({ licenseKey, productKey: tenant?.productKey ?? null });
  if (held === null) return notFound('license');
  const storedKey = held.document?.license?.licenseKey ?? held.licenseKey;
  const total = reader.history.count(storedKey, page.since);
  return done({ changes: reader.history.list(storedKey, page), total });
}

function expired(): Result<never> {
  return failWith('verdict_expired', 'The lease has expired, and the issuer has not renewed it.');
}
