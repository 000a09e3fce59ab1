import type { Principal } from '../../domain/access/principal.ts';
import { lasting, licensePrincipal } from '../../service/access/credential.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { stateOf } from './request-state.ts';

/* On a holder, the license key of a request is its credential (src/http/README.md, Leases). */

/** The principal of a request to a holder before its license key is read, which may be in the body. */
export const unnamed: Principal = licensePrincipal('license');

/**
 * Names the principal of a request after the license key in one of these sets of parameters, and counts the request against
 * the rate of the key.
 */
export function nameByLicense(
  { licenseCredential, rates }: Pick<App, 'licenseCredential' | 'rates'>,
  state: Pick<ReturnType<typeof stateOf>, 'principal' | 'knownCredential'>,
  sets: readonly unknown[],
): void {
  if (licenseCredential === null || state.principal !== unnamed) return;
  const licenseKey = sets.map(licenseKeyIn).find((each) => each !== null) ?? null;
  const { credential } = unnamed;
  const principal = licensePrincipal(licenseKey === null ? credential : licenseCredential(licenseKey));
  const waitMs = rates.requests.take(principal.credential);
  if (waitMs > 0) {
    const more = { retryAfterS: Math.ceil(waitMs / 1000) };
    throw new ProblemError('rate_limited', 'This license key is used in too many requests.', more);
  }
  state.principal = principal;
  state.knownCredential = lasting(principal);
}

function licenseKeyIn(values: unknown): string | null {
  const { licenseKey } = (values ?? {}) as { licenseKey?: unknown };
  return typeof licenseKey === 'string' ? licenseKey : null;
}
