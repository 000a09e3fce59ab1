import { localLicense, verdict, type FreshnessPolicy } from '../../../domain/agent/license-snapshot.ts';
import { waitsUntil } from '../domain/lease-rules.ts';
import type { SignedRequest } from '../domain/lease.ts';
import { parseLicenseKey } from '../../../domain/license.ts';
import { storedLicenseKey } from '../../../service/pasted-keys.ts';
import type { AuthorityReader, Reader } from '../../../service/tables.ts';
import { snapshotOf } from './agent-request.ts';

/** The request may wait for a change of this license key, as stored, until an instant (epoch ms). */
export type LeaseWait = { licenseKey: string; until: number };

/**
 * Whether a request (`Prefer: wait`) may wait at an authority; null: answer it now. Call it again after each change of the
 * license key: it returns null as soon as there is something to say.
 */
export async function mayWait(
  reader: AuthorityReader,
  signedRequest: SignedRequest,
  now: number,
): Promise<LeaseWait | null> {
  const { request, device } = signedRequest;
  const licenseKey = await storedLicenseKey(reader, parseLicenseKey(request.licenseKey) ?? '');
  const license = await reader.licenses.get(licenseKey);
  if (license?.productKey !== request.productKey) return null;
  const activation = await reader.activations.ofDevice(licenseKey, device);
  const { enabled: isEnabled } = license;
  const until = activation === null ? null : waitsUntil(activation, signedRequest, { isEnabled, now });
  return until === null ? null : { licenseKey, until };
}

/** The same at an agent. `productId`: the id of the configured product whose key the request names. */
export function mayWaitAtAgent(
  reader: Reader,
  {
    signedRequest,
    productId,
    freshness,
  }: {
    signedRequest: SignedRequest;
    productId: string;
    freshness: FreshnessPolicy;
  },
  now: number,
): LeaseWait | null {
  const { request, device } = signedRequest;
  const snapshot = snapshotOf(reader, request.licenseKey);
  if (snapshot === null || snapshot.productId !== productId) return null;
  const { licenseKey, enabled } = localLicense(snapshot);
  if (verdict(snapshot, freshness, now).verdict !== 'answer') return null;
  const activation = reader.activations.ofDevice(licenseKey, device);
  const until =
    activation === null ? null : waitsUntil(activation, signedRequest, { isEnabled: enabled, now });
  return until === null ? null : { licenseKey, until };
}
