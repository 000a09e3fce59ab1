import { refuse } from '../../domain/problem.ts';
import { couponScopeFaults } from '../../service/authority/coupon.ts';
import { found, listHeaders, made } from '../answer.ts';
import { route, type Route } from '../route.ts';
import { provenanceHeaders } from '../provenance.ts';
import { couponCreation, couponList, couponObject, presentCoupon } from '../wire/coupon.ts';
import { enveloped } from '../wire/envelope.ts';
import { pageQuery } from '../wire/page.ts';

const path = '/api/v2/coupons';

const create = route({
  method: 'POST',
  path,
  summary: 'Create a coupon',
  access: { credential: 'api_key', scope: 'coupons:write' },
  body: couponCreation,
  answers: { 201: enveloped(couponObject) },
  async faults({ role, reader }, { reach }, { scope }) {
    // An agent has no catalogue: its upstream checks the scope.
    if (role === 'agent' || scope === undefined) return [];
    return await couponScopeFaults(reader, reach.accountId, scope);
  },
  async handle({ app, principal, body, writeOptions: { idempotency }, signal }) {
    const created = await app.couponing.create(principal.reach.accountId, body, idempotency, signal);
    if (!created.ok) return created;
    const { coupon, provenance } = created.value;
    const location = `${path}/${coupon.id}`;
    return made(presentCoupon(coupon), { Location: location, ...provenanceHeaders(provenance) });
  },
});

const list = route({
  method: 'GET',
  path,
  summary: 'List coupons',
  access: { credential: 'api_key', scope: 'coupons:read' },
  query: pageQuery,
  answers: { 200: enveloped(couponList) },
  async handle({ app, principal, query, sentTo, signal }) {
    const listed = await app.couponing.list(principal.reach.accountId, query, signal);
    if (!listed.ok) return listed;
    const { coupons, total, provenance } = listed.value;
    const headers = { ...listHeaders(total, query, sentTo), ...provenanceHeaders(provenance) };
    return found({ coupons: coupons.map(presentCoupon) }, headers);
  },
});

const get = route({
  method: 'GET',
  path: `${path}/:id`,
  summary: 'Retrieve a coupon',
  access: { credential: 'api_key', scope: 'coupons:read' },
  answers: { 200: enveloped(couponObject) },
  async handle({ app, principal, path: { id }, signal }) {
    const number = /^-?\d{1,16}$/.test(id) ? Number(id) : Number.NaN;
    if (!Number.isSafeInteger(number))
      return refuse('coupon_not_found', 'A coupon has an integer as its id.');
    const got = await app.couponing.get(principal.reach.accountId, number, signal);
    if (!got.ok) return got;
    return found(presentCoupon(got.value.coupon), provenanceHeaders(got.value.provenance));
  },
});

/** Coupons (specification 4.1 to 4.3). */
export const couponRoutes: readonly Route[] = [create, list, get];
