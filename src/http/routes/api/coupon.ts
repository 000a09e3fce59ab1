import { leftOutHeader } from '../../../domain/header-names.ts';
import type { Coupon } from '../../../domain/checkout/coupon.ts';
import { withNext, type Page } from '../../../domain/page.ts';
import { failWith, type Result } from '../../../domain/problem/problem.ts';
import type { CouponResponse, CouponList } from '../../../service/services.ts';
import { couponScopeFaults } from '../../../service/authority/coupon.ts';
import { type RouteResponse, ok, created, pageOf, provenanceHeaders } from '../../response.ts';
import type { App } from '../../app.ts';
import { route, type Route } from '../../route.ts';
import {
  countedCouponList,
  couponBytes,
  couponCreation,
  couponId,
  couponList,
  couponObject,
  serializeCounted,
  serializeCoupon,
  redeemedCouponObject,
  shownOrders,
  countedCouponQuery,
} from '../../../wire/coupon.ts';
import { enveloped } from '../../../wire/response.ts';
import { pageQuery } from '../../../wire/page.ts';

const path = '/api/v2/coupons';

async function getById(
  { couponService }: App,
  accountId: string,
  id: string,
  signal: AbortSignal,
): Promise<Result<CouponResponse>> {
  const number = couponId(id);
  if (number === null) return failWith('coupon_not_found', 'A coupon has an integer as its id.');
  return await couponService.get(accountId, number, signal);
}

const create = route({
  method: 'POST',
  path,
  operationId: 'createCoupon',
  tag: 'Coupons',
  summary: 'Create a coupon',
  headers: ['location', 'provenance'],
  takesOperations: true,
  refusals: ['coupon_code_taken', 'product_is_recurring', 'upstream_refused'],
  access: { credential: 'api_key', scope: 'coupons:write' },
  body: couponCreation,
  bodyBytes: couponBytes,
  answers: { 201: enveloped(couponObject) },
  async faults({ role, reader }, { tenant }, { scope }) {
    // An agent has no catalogue: its upstream checks the scope.
    if (role === 'agent' || scope === undefined) return [];
    return await couponScopeFaults(reader, tenant.accountId, scope);
  },
  async handle({ app, principal, body, writeOptions, signal }) {
    const result = await app.couponService.create(principal.tenant.accountId, body, writeOptions, signal);
    if (!result.ok) return result;
    const { coupon, provenance } = result.value;
    const location = `${path}/${coupon.id}`;
    return created(serializeCoupon(coupon), { Location: location, ...provenanceHeaders(provenance) });
  },
});

function pageOfCoupons(
  { coupons: rows, total, leftOut, provenance }: CouponList,
  query: Page,
  sentTo: Parameters<typeof pageOf>[2],
): { items: readonly Coupon[]; headers: RouteResponse['headers'] } {
  const read = pageOf({ list: 'coupons', rows, total, keyOf: ({ id }) => [id] }, query, sentTo);
  const skipped = leftOut > 0 ? { [leftOutHeader]: String(leftOut) } : {};
  return { items: read.items, headers: { ...read.headers, ...provenanceHeaders(provenance), ...skipped } };
}

const list = route({
  method: 'GET',
  path,
  operationId: 'listCoupons',
  tag: 'Coupons',
  summary: 'List coupons',
  headers: ['provenance', 'left_out'],
  access: { credential: 'api_key', scope: 'coupons:read' },
  sessions: 'all',
  query: pageQuery('coupons'),
  answers: { 200: enveloped(couponList) },
  async handle({ app, principal, query, sentTo, signal }) {
    const listed = await app.couponService.list(principal.tenant.accountId, withNext(query), signal);
    if (!listed.ok) return listed;
    const { items, headers } = pageOfCoupons(listed.value, query, sentTo);
    return ok({ coupons: items.map(serializeCoupon) }, headers);
  },
});

const get = route({
  method: 'GET',
  path: `${path}/:id`,
  operationId: 'getCoupon',
  tag: 'Coupons',
  summary: 'Retrieve a coupon',
  headers: ['provenance'],
  refusals: ['coupon_not_found'],
  access: { credential: 'api_key', scope: 'coupons:read' },
  sessions: 'all',
  answers: { 200: enveloped(couponObject) },
  async handle({ app, principal, path: { id }, signal }) {
    const got = await getById(app, principal.tenant.accountId, id, signal);
    if (!got.ok) return got;
    return ok(serializeCoupon(got.value.coupon), provenanceHeaders(got.value.provenance));
  },
});

const checkoutPath = '/agent/v1/coupons';

const listCounted = route({
  method: 'GET',
  path: checkoutPath,
  operationId: 'listCheckoutCoupons',
  tag: 'Checkout',
  summary: 'List coupons with their state and how often each is redeemed',
  headers: ['provenance', 'left_out'],
  access: { credential: 'api_key', scope: 'coupons:read' },
  sessions: 'all',
  query: countedCouponQuery,
  answers: { 200: enveloped(countedCouponList) },
  async handle({ app, principal: { tenant }, query: { state, ...query }, sentTo, signal }) {
    const filter = state === undefined ? {} : { state: { is: state, at: app.now() } };
    const listed = await app.couponService.list(tenant.accountId, { ...withNext(query), ...filter }, signal);
    if (!listed.ok) return listed;
    const { items, headers } = pageOfCoupons(listed.value, query, sentTo);
    const counted = [];
    for (const coupon of items) {
      const redemptions = await app.reader.redemptions.countOf(tenant.accountId, coupon.id);
      counted.push(serializeCounted(coupon, redemptions, app));
    }
    return ok({ coupons: counted }, headers);
  },
});

const getCounted = route({
  method: 'GET',
  path: `${checkoutPath}/:id`,
  operationId: 'getCheckoutCoupon',
  tag: 'Checkout',
  summary: 'Show a coupon with the orders that redeemed it',
  headers: ['provenance'],
  refusals: ['coupon_not_found'],
  access: { credential: 'api_key', scope: 'coupons:read' },
  sessions: 'all',
  answers: { 200: enveloped(redeemedCouponObject) },
  async handle({ app, principal: { tenant }, path: { id }, signal }) {
    const got = await getById(app, tenant.accountId, id, signal);
    if (!got.ok) return got;
    const { coupon, provenance } = got.value;
    const { redemptions } = app.reader;
    const count = await redemptions.countOf(tenant.accountId, coupon.id);
    const orders = await redemptions.ordersOf(tenant.accountId, coupon.id, shownOrders);
    const counted = serializeCounted(coupon, count, app);
    return ok({ ...counted, orders }, provenanceHeaders(provenance));
  },
});

/** Coupons (specification 4.1 to 4.3), and how often they are redeemed (src/http/README.md, Coupons at checkout). */
export const couponRoutes: readonly Route[] = [create, list, get, listCounted, getCounted];
