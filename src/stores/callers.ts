import { defaultAccountId, type Tenant } from '../domain/access/principal.ts';
import { type Result, failWith } from '../domain/problem/problem.ts';
import { toOneLine } from '../domain/text.ts';
import type { App } from '../http/app.ts';
import { turnOf } from '../http/entry/client-address.ts';
import { provenanceHeaders, type RouteResponse } from '../http/response.ts';
import type { RouteRequest } from '../http/route.ts';
import { licenseCredential } from '../service/access/credential.ts';
import type { Caller } from '../service/ports.ts';
import type { LicenseChangeRequest, LicenseResponse } from '../service/services.ts';
import type { Answer } from './store.ts';

/* Callers of a store’s own API have no credential. */

/** What the routes of a store’s own API share. */
export const storeRoute = {
  tag: 'Licenses',
  access: 'anyone',
  roles: ['agent'],
  isVerdict: true,
  takesAnyBody: true,
  staysOpen: () => true,
} as const;

/** What they read of a request. */
export type StoreRequest<Body = unknown> = Pick<
  RouteRequest<string, null, unknown, Body, 'agent'>,
  'app' | 'body' | 'authorization' | 'writeOptions' | 'isAgent' | 'clientAddress' | 'connection' | 'signal'
>;

/** What a call is about. `productId`: null if the call does not name it. */
export type StoreTarget = { productId: string | null };

/** All callers share the look-ups of unknown license keys, and take turns. */
function requesterOf(request: StoreRequest): Caller {
  return { credential: 'software', connection: turnOf(request) };
}

function tenantOf({ productId }: StoreTarget): Tenant {
  return { accountId: defaultAccountId, productKey: productId };
}

export async function verifyLicense(
  request: StoreRequest,
  target: StoreTarget,
  licenseKey: string,
): Promise<Result<LicenseResponse>> {
  const { app, signal } = request;
  return await app.licenseService.verify(tenantOf(target), licenseKey, signal, requesterOf(request));
}

/** How long a change waits for the store, whose answer is exact. It is answered at once while the store is away. */
export const confirmMs = 2_000;

/** The license key is the credential of a caller. */
function credentialOf({ digest }: Pick<App, 'digest'>, licenseKey: string): string {
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
export function responseOf({ status, body }: Answer, response?: LicenseResponse): RouteResponse {
  return { status, headers: response === undefined ? {} : provenanceHeaders(response.provenance), body };
}

/** Changes a license. `callerKey`: the license key that the caller has sent; `licenseKey`: the stored key. */
export async function applyChange(
  request: StoreRequest,
  target: StoreTarget & { callerKey: string },
  change: Pick<LicenseChangeRequest, 'licenseKey' | 'trigger' | 'waitMs' | 'amount' | 'isRefusable'>,
): Promise<Result<LicenseResponse>> {
  const { app, writeOptions, isAgent, signal } = request;
  const changed = await app.licenseService.change(
    {
      ...change,
      tenant: tenantOf(target),
      actor: credentialOf(app, target.callerKey),
      requestId: writeOptions.requestId,
      idempotency: null,
      untilFailure: true,
      isAgent,
      requester: requesterOf(request),
    },
    signal,
  );
  if (changed.ok) app.changes.announce([{ licenseKey: changed.value.license.licenseKey }]);
  return changed;
}

/** The answer about a license of which the store has shown nothing. */
export const notShown: Result<never> = failWith(
  'upstream_unreachable',
  'The store has not shown this license key.',
);

/** The refusal of a call about a product that is not configured; the log names it. */
export function refuseProduct({ log }: Pick<App, 'log'>, product: string, noun = 'product'): Result<never> {
  log.warn({ product: toOneLine(product) }, 'software asks for a product that is not in products');
  return failWith('upstream_unreachable', `This ${noun} is not configured here.`);
}

/** The refusal of a call without the seller’s access token; null: it has the token. `sent`: '' if it has none. */
export function refuseToken(
  app: Pick<App, 'digest' | 'rates'>,
  sent: string,
  expected: string | null,
): Result<never> | null {
  if (sent === '') return failWith('credentials_missing', 'Send the access token of the seller.');
  if (expected !== null && app.digest(sent) === app.digest(expected)) return null;
  if (app.rates.failures.take('') > 0)
    return failWith('rate_limited', 'Too many wrong credentials are sent.');
  const wrong = 'The access token is wrong.';
  const detail = expected === null ? 'upstream.access_token is not configured here.' : wrong;
  return failWith('credentials_invalid', detail);
}
