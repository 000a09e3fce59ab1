import { z } from 'zod';
import { reaches, type Principal, type Tenant } from '../../../domain/access/principal.ts';
import { failWith } from '../../../domain/problem/problem.ts';
import type { QuoteReason } from '../../../domain/checkout/quote.ts';
import { ok, provenanceHeaders } from '../../response.ts';
import type { App } from '../../app.ts';
import type { LicenseForm } from '../../dialects.ts';
import { route, type Route } from '../../route.ts';
import { couponCodeParameters, serializeVerifiedCoupon, verifiedCouponObject } from '../../../wire/coupon.ts';
import { enveloped } from '../../../wire/response.ts';
import { firstVersionParameters } from '../../../wire/license.ts';
import { changeLicense, licenseChanges, verifyLicense, type LicenseTarget } from './license.ts';

/** The parameters of the first version: a product and a license key. */
type Named = { productLink: string; licenseKey: string | null };

/**
 * The tenant and key of a request whose credential may see several products. An unknown product gets the response of
 * an unknown key, so that callers cannot find out which products exist.
 */
async function targetOf(
  { app, principal }: { app: App; principal: Principal },
  { productLink, licenseKey }: Named,
): Promise<LicenseTarget> {
  const productKey = app.products === null ? productLink : app.products.idOf(productLink);
  const tenant: Tenant = { ...principal.tenant, productKey };
  const isReached = productKey !== null && (await isReachable(app, principal, productKey));
  return { tenant, licenseKey: isReached ? licenseKey : null };
}

async function isReachable(app: App, principal: Principal, productKey: string): Promise<boolean> {
  const { accountId } = principal.tenant;
  if (app.role !== 'authority') return reaches(principal, { accountId, productKey });
  const product = await app.reader.products.get(productKey);
  return product !== null && reaches(principal, product);
}

/** Reasons that hold for every cart. */
const invalidating = new Set<QuoteReason>(['not_started', 'ended', 'usage_limit_reached']);

const verifyCoupon = route({
  method: 'GET',
  path: '/api/v1/coupons/verify',
  operationId: 'verifyCouponV1',
  tag: 'First version',
  summary: 'Tell whether a coupon code can be redeemed now, as far as can be said without a cart',
  headers: ['provenance'],
  refusals: ['coupon_code_not_found'],
  access: { credential: 'api_key', scope: 'coupons:read' },
  query: couponCodeParameters,
  answers: { 200: enveloped(z.array(verifiedCouponObject)) },
  async handle({ app, principal, query: { code }, signal }) {
    const { accountId } = principal.tenant;
    const quoted = await app.checkout.quote(accountId, { code, currency: null, lines: [] }, signal);
    if (!quoted.ok) return quoted;
    const { couponId, reasons } = quoted.value.quote;
    if (couponId === null) return failWith('coupon_code_not_found', 'There is no coupon with this code.');
    const got = await app.couponService.get(accountId, couponId, signal);
    if (!got.ok) return got;
    const usage = await app.reader.redemptions.countOf(accountId, couponId);
    const isValid = !reasons.some((reason) => invalidating.has(reason));
    const coupon = serializeVerifiedCoupon(got.value.coupon, { isValid, usage });
    return ok([coupon], provenanceHeaders(quoted.value.provenance));
  },
});

/**
 * The first version of the interface, as far as software still uses it: the API key is the credential, and the
 * caller names the product of a license key.
 */
export function firstVersionRoutes(form: LicenseForm): readonly Route[] {
  const answers = { 200: enveloped(form.schema) };
  const verify = route({
    method: 'GET',
    path: '/api/v1/license/verify',
    operationId: 'verifyLicenseV1',
    tag: 'First version',
    summary: 'Verify a license key of a product',
    headers: ['provenance'],
    access: { credential: 'api_key', scope: 'verify' },
    isVerdict: true,
    query: firstVersionParameters,
    answers,
    handle: async (request) => verifyLicense(request, await targetOf(request, request.query), form),
  });
  const changes = licenseChanges.map(({ trigger, scope, operationId, summary }) =>
    route({
      method: 'PUT',
      path: `/api/v1/license/${trigger}`,
      operationId: `${operationId}V1`,
      tag: 'First version',
      summary: `${summary} of a product`,
      headers: ['provenance'],
      access: { credential: 'api_key', scope },
      isVerdict: true,
      body: firstVersionParameters,
      isBodyInQuery: form.isBodyInQuery,
      answers,
      handle: async (request) =>
        changeLicense(request, { ...(await targetOf(request, request.body)), trigger }, form),
    }),
  );
  return [verify, ...changes, verifyCoupon];
}
