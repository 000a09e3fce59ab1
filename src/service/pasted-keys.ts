import type { LicenseService } from './services.ts';
import { licenseKeysIn } from '../domain/license.ts';
import type { Result, Problem } from '../domain/problem/problem.ts';
import type { AuthorityReader, Awaitable } from './tables.ts';
import { plainCouponCode, type CouponFilter } from '../domain/checkout/coupon.ts';

/** Problems that mean that the key is unknown here and nothing was changed. */
const unknownKey: ReadonlySet<Problem['code']> = new Set([
  'license_not_found',
  'upstream_unreachable',
  'rate_limited',
]);

/**
 * Also finds a license key that was pasted with invisible or typographic characters. The exact key is tried first,
 * because an earlier store may have issued keys with such characters.
 */
export function acceptPastedKeys(licenseService: LicenseService): LicenseService {
  return {
    verify: (tenant, licenseKey, signal, requester) =>
      trySpellings(licenseKey, (key) => licenseService.verify(tenant, key, signal, requester)),
    // The caller passes only keys that have a single spelling.
    verifyNow: (tenant, licenseKey) => licenseService.verifyNow?.(tenant, licenseKey) ?? null,
    askAgain: (licenseKey) => {
      for (const key of licenseKeysIn(licenseKey)) licenseService.askAgain?.(key);
    },
    change: (request, signal) =>
      trySpellings(request.licenseKey, (licenseKey) =>
        licenseService.change({ ...request, licenseKey }, signal),
      ),
    history: (tenant, licenseKey, page) =>
      trySpellings(licenseKey, (key) => licenseService.history(tenant, key, page)),
  };
}

async function trySpellings<Value>(
  licenseKey: string,
  ask: (licenseKey: string) => Promise<Result<Value>>,
): Promise<Result<Value>> {
  let answer = await ask(licenseKey);
  if (answer.ok || !unknownKey.has(answer.problem.code)) return answer;
  for (const spelling of licenseKeysIn(licenseKey)) {
    if (spelling === licenseKey) continue;
    const next = await ask(spelling);
    if (next.ok || !unknownKey.has(next.problem.code)) return next;
    // Respond "not found" only if no spelling was found.
    if (next.problem.code !== 'license_not_found') answer = next;
  }
  return answer;
}

/** The spelling under which an authority has the license: as sent, or as it was issued before it was pasted. */
export async function storedLicenseKey(
  { licenses }: { licenses: Pick<AuthorityReader['licenses'], 'get'> },
  licenseKey: string,
): Promise<string> {
  const spellings = licenseKeysIn(licenseKey);
  if (spellings.length <= 1) return licenseKey;
  for (const spelling of spellings) if ((await licenses.get(spelling)) !== null) return spelling;
  return spellings[1] ?? licenseKey;
}

export async function withStoredLicenseKey<Filter extends { licenseKey?: string | undefined }>(
  { reader }: { reader: Parameters<typeof storedLicenseKey>[0] },
  filter: Filter,
): Promise<Filter> {
  const { licenseKey } = filter;
  return licenseKey === undefined
    ? filter
    : { ...filter, licenseKey: await storedLicenseKey(reader, licenseKey) };
}

/**
 * The spelling under which a coupon is stored: as sent, or without invisible and typographic characters. An earlier
 * store may have issued codes with such characters.
 */
export async function storedCouponCode(
  code: string,
  byCode: (code: string) => Awaitable<unknown>,
): Promise<string> {
  const plain = plainCouponCode(code);
  return plain === code || (await byCode(code)) !== null ? code : plain;
}

export async function withStoredCouponCode<Filter extends CouponFilter>(
  filter: Filter,
  byCode: (code: string) => Awaitable<unknown>,
): Promise<Filter> {
  return filter.code === undefined
    ? filter
    : { ...filter, code: await storedCouponCode(filter.code, byCode) };
}
