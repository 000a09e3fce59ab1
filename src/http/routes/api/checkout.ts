import type { Principal } from '../../../domain/access/principal.ts';
import { type ParameterFault, notFound } from '../../../domain/problem/problem.ts';
import type { Cart } from '../../../domain/checkout/quote.ts';
import { cartFaults } from '../../../service/checkout.ts';
import { ok, provenanceHeaders, created, noContent, pageOf } from '../../response.ts';
import type { App } from '../../app.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  cartBytes,
  cartParameters,
  serializeQuote,
  quoteObject,
  serializeRedemption,
  redemptionList,
  redemptionObject,
  redemptionParameters,
  redemptionQuery,
} from '../../../wire/checkout.ts';
import { withNext } from '../../../domain/page.ts';

/** The faults of a cart that only the catalogue can tell. */
async function catalogueFaults(
  { role, reader }: App,
  { tenant }: Principal,
  { cart }: { cart?: Cart },
): Promise<readonly ParameterFault[]> {
  // An agent has no catalogue: it takes the products as the cart names them.
  if (role === 'agent' || cart === undefined) return [];
  return await cartFaults(reader, tenant.accountId, cart.lines);
}

const quote = route({
  method: 'POST',
  path: '/agent/v1/quote',
  operationId: 'quoteCoupon',
  tag: 'Checkout',
  summary: 'Ask whether a coupon can be redeemed for a cart, and what it takes off',
  headers: ['provenance'],
  refusals: ['product_archived'],
  access: { credential: 'api_key', scope: 'coupons:read' },
  sessions: 'all',
  body: cartParameters,
  bodyBytes: cartBytes,
  readsOnly: true,
  answers: { 200: enveloped(quoteObject) },
  faults: catalogueFaults,
  async handle({ app, principal, body: { cart }, signal }) {
    const quoted = await app.checkout.quote(principal.tenant.accountId, cart, signal);
    if (!quoted.ok) return quoted;
    return ok(serializeQuote(quoted.value.quote, app.role), provenanceHeaders(quoted.value.provenance));
  },
});

const path = '/agent/v1/redemptions';
const reading = { credential: 'api_key', scope: 'coupons:read' } as const;
const writing = { credential: 'api_key', scope: 'coupons:write' } as const;

const redeem = route({
  method: 'POST',
  path,
  operationId: 'redeemCoupon',
  tag: 'Checkout',
  summary: 'Redeem a coupon for an order',
  headers: ['location', 'provenance'],
  takesOperations: true,
  refusals: ['coupon_not_redeemable', 'order_reused', 'product_archived'],
  access: writing,
  body: redemptionParameters,
  bodyBytes: cartBytes,
  answers: { 200: enveloped(redemptionObject), 201: enveloped(redemptionObject) },
  faults: catalogueFaults,
  // An agent sends the redemption again with the time at which it has answered its caller meanwhile.
  identityOf: ({ order, cart }) => ({ order, cart }),
  async handle({ app, principal, body: { answeredAt = null, ...body }, writeOptions, signal }) {
    const command = { accountId: principal.tenant.accountId, ...body, takenAt: answeredAt };
    const redeemed = await app.checkout.redeem(command, writeOptions, signal);
    if (!redeemed.ok) return redeemed;
    const { redemption, isNew, provenance } = redeemed.value;
    const response = serializeRedemption(redemption, app.role);
    const headers = provenanceHeaders(provenance);
    if (!isNew) return ok(response, headers);
    return created(response, { Location: `${path}/${encodeURIComponent(redemption.order)}`, ...headers });
  },
});

const list = route({
  method: 'GET',
  path,
  operationId: 'listRedemptions',
  tag: 'Checkout',
  summary: 'List the redemptions of a coupon',
  access: reading,
  sessions: 'all',
  query: redemptionQuery,
  answers: { 200: enveloped(redemptionList) },
  async handle({ app, principal: { tenant }, query, sentTo }) {
    const rows = await app.lists.redemptions.listOf(tenant.accountId, query.couponId, withNext(query));
    const total = await app.reader.redemptions.countOf(tenant.accountId, query.couponId);
    const read = pageOf({ list: 'redemptions', rows, total, keyOf: ({ id }) => [id] }, query, sentTo);
    return ok({ redemptions: read.items.map((each) => serializeRedemption(each, app.role)) }, read.headers);
  },
});

const get = route({
  method: 'GET',
  path: `${path}/:order`,
  operationId: 'getRedemption',
  tag: 'Checkout',
  summary: 'Show the redemption of an order',
  refusals: ['redemption_not_found'],
  access: reading,
  sessions: 'all',
  answers: { 200: enveloped(redemptionObject) },
  async handle({ app, principal: { tenant }, path: { order } }) {
    const redemption = await app.reader.redemptions.get(tenant.accountId, order);
    return redemption === null ? notFound('redemption') : ok(serializeRedemption(redemption, app.role));
  },
});

const remove = route({
  method: 'DELETE',
  path: `${path}/:order`,
  operationId: 'voidRedemption',
  tag: 'Checkout',
  summary: 'Void the redemption of an order, which gives the use of the coupon back',
  takesOperations: true,
  refusals: ['redemption_not_found'],
  access: writing,
  answers: { 204: null },
  async handle({ app, principal: { tenant }, path: { order }, writeOptions, signal }) {
    const command = { accountId: tenant.accountId, order };
    const voided = await app.checkout.void(command, writeOptions, signal);
    return voided.ok ? noContent() : voided;
  },
});

/** Quotes and redemptions (src/http/README.md, Coupons at checkout). */
export const checkoutRoutes: readonly Route[] = [quote, redeem, list, get, remove];
