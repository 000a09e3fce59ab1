import type { Principal } from '../../../domain/access/principal.ts';
import { notFound, type Result } from '../../../domain/problem/problem.ts';
import { couponScopeFaults } from '../../../service/authority/coupon.ts';
import { ok, type RouteResponse } from '../../response.ts';
import { route, type Route, type RouteRequest } from '../../route.ts';
import {
  couponBytes,
  couponCreation,
  couponId,
  couponObject,
  serializeCoupon,
} from '../../../wire/coupon.ts';
import { enveloped } from '../../../wire/response.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority'] as const;
const path = '/admin/v1/coupons/:id';
const answers = { 200: enveloped(couponObject) };

const update = route({
  method: 'PUT',
  path,
  operationId: 'updateCoupon',
  tag: 'Coupons',
  summary: 'Replace the terms of a coupon; of one that was redeemed not its code, scope and discount',
  refusals: ['coupon_not_found', 'coupon_code_taken', 'coupon_redeemed', 'product_is_recurring'],
  access,
  roles,
  body: couponCreation,
  bodyBytes: couponBytes,
  answers,
  async faults({ reader }, { tenant }, { scope }) {
    return scope === undefined ? [] : await couponScopeFaults(reader, tenant.accountId, scope);
  },
  async handle({ app, principal, path: { id }, body: terms, writeOptions }) {
    const number = couponId(id);
    if (number === null) return notFound('coupon');
    const command = { accountId: principal.tenant.accountId, id: number, terms };
    const changed = await app.writer.write('updateCoupon', command, writeOptions);
    return changed.ok ? ok(serializeCoupon(changed.value)) : changed;
  },
});

const end = route({
  method: 'POST',
  path: `${path}/end`,
  operationId: 'endCoupon',
  tag: 'Coupons',
  summary: 'End a coupon now',
  refusals: ['coupon_not_found'],
  access,
  roles,
  answers,
  handle: (request) => act('endCoupon', request),
});

const remove = route({
  method: 'DELETE',
  path,
  operationId: 'deleteCoupon',
  tag: 'Coupons',
  summary: 'Delete a coupon that was never redeemed',
  refusals: ['coupon_not_found', 'coupon_redeemed'],
  access,
  roles,
  answers,
  handle: (request) => act('deleteCoupon', request),
});

type Request = RouteRequest<typeof path, Principal, unknown, unknown>;

async function act(
  name: 'endCoupon' | 'deleteCoupon',
  { app, principal, path: { id }, writeOptions }: Request,
): Promise<Result<RouteResponse>> {
  const number = couponId(id);
  if (number === null) return notFound('coupon');
  const command = { accountId: principal.tenant.accountId, id: number };
  const acted = await app.writer.write(name, command, writeOptions);
  return acted.ok ? ok(serializeCoupon(acted.value)) : acted;
}

/** What a seller changes of coupons (src/http/README.md, Admin routes). */
export const couponChangeRoutes: readonly Route[] = [update, end, remove];
