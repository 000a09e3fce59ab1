import { parsePlainLicenseKey } from '../domain/license-key.ts';
import type { Problem, Result } from '../domain/problem/problem.ts';
import type { Licensing } from './answers.ts';
import type { AuthorityReader } from './tables.ts';

/** Refusals by which nothing was said or changed because the key is not known here. */
const unknown: ReadonlySet<Problem['code']> = new Set([
  'license_not_found',
  'upstream_unreachable',
  'rate_limited',
]);

/**
 * Finds a license key also where it was pasted with invisible or typographic characters. The key exactly as sent comes
 * first: an earlier store may have issued keys that contain such characters.
 */
export function findPlainKeys(licensing: Licensing): Licensing {
  return {
    verify: (tenant, licenseKey, signal, requester) =>
      eitherSpelling(licenseKey, (key) => licensing.verify(tenant, key, signal, requester)),
    change: (request, signal) =>
      eitherSpelling(request.licenseKey, (licenseKey) =>
        licensing.change({ ...request, licenseKey }, signal),
      ),
    history: (tenant, licenseKey, page) =>
      eitherSpelling(licenseKey, (key) => licensing.history(tenant, key, page)),
  };
}

async function eitherSpelling<Value>(
  licenseKey: string,
  ask: (licenseKey: string) => Promise<Result<Value>>,
): Promise<Result<Value>> {
  const plain = parsePlainLicenseKey(licenseKey);
  const asSent = await ask(licenseKey);
  if (plain === null || plain === licenseKey || asSent.ok || !unknown.has(asSent.problem.code)) return asSent;
  const asPlain = await ask(plain);
  // "Not found" says something of both spellings only where it was the answer for both.
  if (asPlain.ok || asSent.problem.code === 'license_not_found') return asPlain;
  return asPlain.problem.code === 'license_not_found' ? asSent : asPlain;
}

/** The spelling of a key under which an authority has a license: as sent, or else as `findPlainKeys` finds it. */
export async function knownSpelling(
  { licenses }: { licenses: Pick<AuthorityReader['licenses'], 'get'> },
  licenseKey: string,
): Promise<string> {
  const plain = parsePlainLicenseKey(licenseKey);
  if (plain === null || plain === licenseKey) return licenseKey;
  return (await licenses.get(licenseKey)) === null ? plain : licenseKey;
}

/** A filter with its license key in the spelling under which an authority has the license. */
export async function inKnownKey<Filter extends { licenseKey?: string | undefined }>(
  { reader }: { reader: Parameters<typeof knownSpelling>[0] },
  filter: Filter,
): Promise<Filter> {
  const { licenseKey } = filter;
  return licenseKey === undefined
    ? filter
    : { ...filter, licenseKey: await knownSpelling(reader, licenseKey) };
}
