import type { DatabaseSync } from 'node:sqlite';
import type { Cart, Quote } from '../../../domain/checkout/quote.ts';
import type { Redemption } from '../../../domain/checkout/redemption.ts';
import type { ListedRedemption, RedemptionReads, RedemptionTable } from '../../../service/checkout/tables.ts';
import { couponIdNow } from './agent/mirror.ts';
import { afterNumber } from './cursor.ts';
import { prepareChange, prepareQuery } from '../statements.ts';

type RedemptionRow = Omit<ListedRedemption, 'cart' | 'quote'> & { cart: string; quote: string };

const select = `SELECT id, order_id AS "order", coupon_id AS couponId, cart, quote, redeemed_at AS redeemedAt
  FROM redemption`;

function listedFrom(row: RedemptionRow): ListedRedemption {
  return { ...redemptionFrom(row), id: row.id };
}

function redemptionFrom({ order, couponId, cart, quote, redeemedAt }: RedemptionRow): Redemption {
  return {
    order,
    couponId,
    cart: JSON.parse(cart) as Cart,
    // The stored quote has the id that the coupon had at that time.
    quote: { ...(JSON.parse(quote) as Quote), couponId },
    redeemedAt,
  };
}

const ofCoupon = `WHERE account_id = ?1 AND coupon_id = ${couponIdNow('?2')}`;

export function redemptionReads(database: DatabaseSync): RedemptionReads {
  const get = prepareQuery(database, `${select} WHERE account_id = ? AND order_id = ?`, redemptionFrom);
  const countOf = prepareQuery(
    database,
    `SELECT count FROM redemption_count ${ofCoupon}`,
    ({ count }: { count: number }) => count,
  );
  const listOf = prepareQuery(
    database,
    `${select} ${ofCoupon} AND id > ?3 ORDER BY id LIMIT ?4 OFFSET ?5`,
    listedFrom,
  );
  const ordersOf = prepareQuery(
    database,
    `SELECT order_id AS "order" FROM redemption ${ofCoupon} ORDER BY id DESC LIMIT ?3`,
    ({ order }: { order: string }) => order,
  );
  return {
    get: (accountId, order) => get.first(accountId, order),
    countOf: (accountId, couponId) => countOf.first(accountId, couponId) ?? 0,
    listOf: (accountId, couponId, page) =>
      listOf.all(accountId, couponId, afterNumber(page), page.limit, page.offset),
    ordersOf: (accountId, couponId, limit) => ordersOf.all(accountId, couponId, limit),
  };
}

export function redemptionTable(database: DatabaseSync): RedemptionTable {
  const add = prepareChange(
    database,
    `INSERT INTO redemption (account_id, order_id, coupon_id, cart, quote, redeemed_at)
     VALUES (:accountId, :order, :couponId, :cart, :quote, :redeemedAt)`,
  );
  const remove = prepareChange(
    database,
    'DELETE FROM redemption WHERE account_id = :accountId AND order_id = :order',
  );
  const renumber = prepareChange(
    database,
    'UPDATE redemption SET coupon_id = :to WHERE account_id = :accountId AND coupon_id = :from',
  );
  return {
    ...redemptionReads(database),
    add(accountId, { cart, quote, ...redemption }) {
      add({ accountId, ...redemption, cart: JSON.stringify(cart), quote: JSON.stringify(quote) });
    },
    remove: (accountId, order) => remove({ accountId, order }).changes > 0,
    renumberCoupon(accountId, from, to) {
      renumber({ accountId, from, to });
    },
  };
}
