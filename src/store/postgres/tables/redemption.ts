import type { Cart, Quote } from '../../../domain/checkout/quote.ts';
import type { Redemption } from '../../../domain/checkout/redemption.ts';
import type { ListedRedemption, RedemptionReads, RedemptionTable } from '../../../service/checkout/tables.ts';
import type { AuthorityTable, AwaitableTable } from '../../../service/tables.ts';
import {
  prepareList,
  prepareQuery,
  prepareWrite,
  type Condition,
  type Source,
  type WritingSource,
} from '../statements.ts';

type Row = Omit<ListedRedemption, 'cart' | 'quote'> & { cart: string; quote: string };

const columns = 'id, order_id AS "order", coupon_id AS "couponId", cart, quote, redeemed_at AS "redeemedAt"';
const listedFrom = ({ cart, quote, ...row }: Row): ListedRedemption => ({
  ...row,
  cart: JSON.parse(cart) as Cart,
  quote: JSON.parse(quote) as Quote,
});
const fromRow = (row: Row): Redemption => {
  const { id: _, ...redemption } = listedFrom(row);
  return redemption;
};

export function redemptionReads(source: Source): AwaitableTable<RedemptionReads> {
  const { redemption, redemptionCount } = source.names;
  const select = `SELECT ${columns} FROM ${redemption}`;
  const get = prepareQuery(source, `${select} WHERE account_id = $1 AND order_id = $2`, fromRow);
  const countOf = prepareQuery(
    source,
    `SELECT count FROM ${redemptionCount} WHERE account_id = $1 AND coupon_id = $2`,
    ({ count }: { count: number }) => count,
  );
  const listed = prepareList(source, { select: columns, from: redemption, key: ['id'] }, listedFrom);
  const ordersOf = prepareQuery(
    source,
    `SELECT order_id AS "order" FROM ${redemption} WHERE account_id = $1 AND coupon_id = $2
     ORDER BY id DESC LIMIT $3::bigint`,
    ({ order }: { order: string }) => order,
  );
  return {
    get: (accountId, order) => get.first(accountId, order),
    countOf: async (accountId, couponId) => (await countOf.first(accountId, couponId)) ?? 0,
    listOf: (accountId, couponId, page) => {
      const ofCoupon: Condition[] = [
        [(place) => `account_id = ${place}`, accountId],
        [(place) => `coupon_id = ${place}`, couponId],
      ];
      return listed.list(ofCoupon, page);
    },
    ordersOf: (accountId, couponId, limit) => ordersOf.all(accountId, couponId, limit),
  };
}

/** Also counts the redemptions of each coupon. */
export function redemptionTable(source: WritingSource): AuthorityTable<RedemptionTable> {
  const { redemption, redemptionCount } = source.names;
  const add = prepareWrite(
    source,
    `WITH added AS (
       INSERT INTO ${redemption} (account_id, order_id, coupon_id, cart, quote, redeemed_at)
       VALUES ($1, $2, $3, $4, $5, $6) RETURNING account_id, coupon_id
     )
     INSERT INTO ${redemptionCount} AS redeemed (account_id, coupon_id, count)
     SELECT account_id, coupon_id, 1 FROM added
     ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = redeemed.count + 1`,
  );
  const remove = prepareQuery(
    source,
    `WITH removed AS (
       DELETE FROM ${redemption} WHERE account_id = $1 AND order_id = $2 RETURNING account_id, coupon_id
     )
     UPDATE ${redemptionCount} AS redeemed SET count = redeemed.count - 1 FROM removed
     WHERE redeemed.account_id = removed.account_id AND redeemed.coupon_id = removed.coupon_id
     RETURNING 1`,
    () => true,
  );
  return {
    ...redemptionReads(source),
    add: (accountId, { order, couponId, cart, quote, redeemedAt }) =>
      add(accountId, order, couponId, JSON.stringify(cart), JSON.stringify(quote), redeemedAt),
    remove: async (accountId, order) => (await remove.first(accountId, order)) !== null,
  };
}
