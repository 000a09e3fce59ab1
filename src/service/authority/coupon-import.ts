import type { Coupon, CouponTerms } from '../../domain/checkout/coupon.ts';
import { foldCouponCode, isPlainCouponCode, malformedCode } from '../../domain/checkout/coupon.ts';
import { notFound } from '../../domain/problem/not-found.ts';
import type { Result } from '../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../tables.ts';
import { codeTaken, couponScopeFaults } from './coupon.ts';
import { importEach, isSameSecond, type ImportedRow, type ImportReport, type ImportRows } from './import.ts';

/** A coupon of another store. `id`: null for a new id. */
export type CouponRow = { row: number; id: number | null; terms: CouponTerms };

export type CouponImport = ImportRows<CouponRow> & { accountId: string };

/** Imports an account's coupons from another store. Redemptions in that store do not count here. */
export async function importCoupons(
  transaction: AuthorityTransaction,
  command: CouponImport,
): Promise<Result<ImportReport>> {
  const { accountId } = command;
  if ((await transaction.accounts.get(accountId)) === null) {
    return notFound('account');
  }
  const coupons = command.isDryRun ? rehearsed(transaction.coupons) : transaction.coupons;
  // Rows with an id come first, because a generated id could take the id of another row.
  const isInOrder = command.rows.some(({ id }) => id === null);
  const rows = command.rows.toSorted((one, other) => Number(one.id === null) - Number(other.id === null));
  return await importEach(
    { ...command, rows },
    {
      importOne: (row) => importCoupon({ ...transaction, coupons }, row, accountId),
      identitiesOf: ({ id, terms }) =>
        isInOrder ? ['any'] : [`id ${id}`, `code ${foldCouponCode(terms.code)}`],
    },
  );
}

/**
 * Imports one coupon. Unlike the API, an import accepts a coupon for a product with a recurring price: the other store
 * may have created it before the price became recurring. It gives no discount while the price is recurring.
 */
async function importCoupon(
  transaction: AuthorityTransaction,
  { id, terms }: CouponRow,
  accountId: string,
): Promise<ImportedRow> {
  const { coupons } = transaction;
  const stored = await coupons.byCode(accountId, terms.code);
  if (stored !== null && (id ?? stored.id) === stored.id && isSame(terms, stored)) return 'unchanged';
  if (stored !== null) return codeTaken;
  if (!isPlainCouponCode(terms.code)) return { code: malformedCode.code, detail: malformedCode.detail };
  if (id !== null && (await coupons.isTaken(id))) {
    return { code: 'coupon_id_taken', detail: 'There already is another coupon with this id.' };
  }
  const [fault] = await couponScopeFaults(transaction, accountId, terms.scope);
  if (fault !== undefined) return { code: fault.code, detail: fault.detail };
  await coupons.add(accountId, terms, id);
  return 'imported';
}

/** Keeps writes in memory, so that a dry run finds a duplicate code or id. */
function rehearsed(coupons: AuthorityTransaction['coupons']): typeof coupons {
  const added = new Map<string, Coupon>();
  const ids = new Set<number>();
  return {
    ...coupons,
    isTaken: (id) => ids.has(id) || coupons.isTaken(id),
    byCode: (accountId, code) => added.get(foldCouponCode(code)) ?? coupons.byCode(accountId, code),
    add: (_: string, terms: CouponTerms, id?: number | null) => {
      const coupon = { ...terms, id: id ?? 0 };
      ids.add(coupon.id);
      added.set(foldCouponCode(terms.code), coupon);
      return coupon;
    },
  };
}

function isSame(terms: CouponTerms, coupon: Coupon): boolean {
  return (
    JSON.stringify(withoutDates(terms)) === JSON.stringify(withoutDates(coupon)) &&
    isSameSecond(terms.startAt, coupon.startAt) &&
    isSameSecond(terms.endAt, coupon.endAt)
  );
}

function withoutDates({ scope, discount, code, ...terms }: CouponTerms): unknown[] {
  const { minimumPurchaseAmount, usageLimit, notes } = terms;
  return [scope, discount, code, minimumPurchaseAmount, usageLimit, notes];
}
