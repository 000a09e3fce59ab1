import { type Result, failWith } from '../domain/problem/problem.ts';
import type { App } from '../http/app.ts';
import { provenanceHeaders, type RouteResponse } from '../http/response.ts';
import { licenseCredential } from '../service/access/credential.ts';
import type { LicenseResponse } from '../service/services.ts';

/* Callers of a store’s own API have no credential. */

/** All of them share the look-ups of unknown license keys, and take turns (`turnOf`). */
export const everybody = 'software';

/** How long a change waits for the store, whose answer is exact. It is answered at once while the store is away. */
export const confirmMs = 2_000;

/** The license key is the credential of a caller. */
export function credentialOf({ digest }: Pick<App, 'digest'>, licenseKey: string): string {
  return licenseCredential(digest(licenseKey).slice(0, 16));
}

/** The refusal of a caller whose license key is used too often; null: it is not. */
export function limitedBy(app: Pick<App, 'digest' | 'rates'>, licenseKey: string): Result<never> | null {
  const waitMs = app.rates.requests.take(credentialOf(app, licenseKey));
  if (waitMs <= 0) return null;
  const detail = 'This license key is used in too many requests.';
  return failWith('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) });
}

/** An answer in the form of the store. */
export function responseOf(
  { status, body }: { status: number; body: object },
  response?: LicenseResponse,
): RouteResponse {
  return { status, headers: response === undefined ? {} : provenanceHeaders(response.provenance), body };
}
