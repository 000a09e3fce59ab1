import type { Dispatcher } from 'undici';
import type { Coupon, CouponTerms } from '../../../../src/domain/checkout/coupon.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import type { Transaction } from '../../../../src/service/tables.ts';
import { serializeQuote } from '../../../../src/wire/checkout.ts';
import { couponCreation, serializeCoupon } from '../../../../src/wire/coupon.ts';
import { missing, readRequest, type Reply } from '../ledger.ts';

const accountId = 'default';

/** Answers what an agent asks about coupons outside of `/sync/v1`. */
export async function answerCoupons(
  request: Dispatcher.DispatchOptions,
  { coupons, redemptions }: Transaction,
  create: (terms: CouponTerms) => Promise<Result<Coupon>>,
): Promise<Reply> {
  const order = /^\/agent\/v1\/redemptions\/(.+)$/.exec(request.path)?.[1];
  if (order !== undefined) {
    const redemption = redemptions.get(accountId, decodeURIComponent(order));
    return redemption === null ? missing : found(serializeQuote(redemption.quote, 'authority'));
  }
  const { what, subject, parameters } = readRequest(request);
  if (what === 'get_coupon') {
    const coupon = coupons.get(accountId, Number(subject));
    return coupon === null ? missing : found(serializeCoupon(coupon));
  }
  if (what === 'list_coupons') {
    const [limit = 10, offset = 0] = ['limit', 'offset'].map((name) => Number(parameters.get(name)));
    const page = coupons.list(accountId, { limit, offset });
    return found({ coupons: page.map(serializeCoupon) });
  }
  const read = couponCreation.read(new Map(parameters));
  if (!read.ok) throw new Error(`the agent sent what is not valid: ${JSON.stringify(read.faults)}`);
  const created = await create(read.values);
  if (created.ok) return found(serializeCoupon(created.value));
  return { status: 409, body: { error: created.problem.detail } };
}

function found(data: object): Reply {
  return { status: 200, body: { data } };
}
