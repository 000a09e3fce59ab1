import { parsePlainLicenseKey } from '../domain/license-key.ts';
import type { Problem, Result } from '../domain/problem/problem.ts';
import type { Licensing } from './answers.ts';
import type { AuthorityReader } from './tables.ts';

/** Refusals because the key is unknown here; nothing was changed. */
const unknown: ReadonlySet<Problem['code']> = new Set([
  'license_not_found',
  'upstream_unreachable',
  'rate_limited',
]);

/**
 * Also finds a license key that was pasted with invisible or typographic characters. The exact key is tried first,
 * because an earlier store may have issued keys with such characters.
 */
export function findPlainKeys(licensing: Licensing): Licensing {
  return {
    verify: (tenant, licenseKey, signal, requester) =>
      eitherSpelling(licenseKey, (key) => licensing.verify(tenant, key, signal, requester)),
    // The caller passes only keys that have a single spelling.
    verifyNow: (tenant, licenseKey) => licensing.verifyNow?.(tenant, licenseKey) ?? null,
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
  // Respond "not found" only if neither spelling was found.
  if (asPlain.ok || asSent.problem.code === 'license_not_found') return asPlain;
  return asPlain.problem.code === 'license_not_found' ? asSent : asPlain;
}

/** The spelling under which an authority has the license: as sent, or without special characters. */
export async function knownSpelling(
  { licenses }: { licenses: Pick<AuthorityReader['licenses'], 'get'> },
  licenseKey: string,
): Promise<string> {
  const plain = parsePlainLicenseKey(licenseKey);
  if (plain === null || plain === licenseKey) return licenseKey;
  return (await licenses.get(licenseKey)) === null ? plain : licenseKey;
}

export async function inKnownKey<Filter extends { licenseKey?: string | undefined }>(
  { reader }: { reader: Parameters<typeof knownSpelling>[0] },
  filter: Filter,
): Promise<Filter> {
  const { licenseKey } = filter;
  return licenseKey === undefined
    ? filter
    : { ...filter, licenseKey: await knownSpelling(reader, licenseKey) };
}
