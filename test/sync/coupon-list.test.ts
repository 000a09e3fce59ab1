import { expect, it } from 'vitest';
import { notApplied, type Applied, type Outcome } from '../../src/domain/outbox/outcome.ts';
import type { CouponPage, UpstreamPage } from '../../src/service/ports.ts';
import { readCouponList } from '../../src/sync/coupon-list.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const terms = buildTerms();

type ListOptions = {
  /** The largest page, whatever is requested. */
  cap?: number;
  /** Whether the upstream respects the offset. */
  pages?: boolean;
  /** Called before each response, to change the list. */
  before?: (ids: number[]) => void;
};

/** An upstream with this number of coupons. */
function withCoupons(total: number, { cap = 100, pages = true, before }: ListOptions = {}) {
  const ids = total === Infinity ? null : Array.from({ length: total }, (_, index) => index + 1);
  const asked: number[] = [];
  const ask = async ({ limit, offset }: UpstreamPage): Promise<Applied<CouponPage>> => {
    asked.push(offset);
    if (ids !== null) before?.(ids);
    const from = pages ? offset : 0;
    const count = Math.min(limit, cap);
    const listed =
      ids?.slice(from, from + count) ?? Array.from({ length: count }, (_, index) => from + index + 1);
    return {
      outcome: 'applied',
      value: { coupons: listed.map((id) => ({ ...terms, id })), unreadable: [] },
      confirmedAt: 1,
      isCached: false,
    };
  };
  return { ask, asked };
}

it('a list of several pages is as old as its oldest page', async () => {
  const { ask } = withCoupons(250);
  let at = 100;
  const later: typeof ask = async (page) => {
    at += 1;
    return { ...(await ask(page)), confirmedAt: at };
  };
  expect(await readCouponList(later, 1_000)).toMatchObject({ confirmedAt: 101 });
  // A coupon that was created after the listing began may be missing, whatever clock the upstream has.
  expect(await readCouponList(later, 50)).toMatchObject({ confirmedAt: 50 });
});

it.each([0, 1, 99, 100, 101, 250])('a list of %i coupons is read completely', async (total) => {
  const list = await readCouponList(withCoupons(total).ask, 1);
  expect(list).toMatchObject({ outcome: 'applied', value: { coupons: { length: total } } });
});

it.each([
  [1, 3],
  [10, 10],
  [10, 95],
  [50, 120],
])('a list is read completely if the upstream sends %i coupons per page and has %i', async (cap, total) => {
  const list = await readCouponList(withCoupons(total, { cap }).ask, 1);
  expect(list).toMatchObject({ outcome: 'applied', value: { coupons: { length: total } } });
});

it('a list with a page that is too large is read in smaller pages', async () => {
  const { ask, asked } = withCoupons(95);
  const isTooLarge: Outcome<never> = {
    outcome: 'ambiguous',
    status: null,
    detail: 'the response is larger than 1 MiB',
    retryAfterMs: null,
    isTooLarge: true,
  };
  const list = await readCouponList(async (page) => (page.limit > 10 ? isTooLarge : await ask(page)), 1);
  expect(list).toMatchObject({ outcome: 'applied', value: { coupons: { length: 95 } } });
  expect(asked.slice(0, 11)).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95]);
  expect(await readCouponList(async () => isTooLarge, 1)).toBe(isTooLarge);
});

it.each([
  [100, 101],
  [10, 21],
])('a list that loses a coupon between two pages of %i misses no other coupon', async (cap, total) => {
  const upstream = withCoupons(total, {
    cap,
    before: (ids) => {
      if (upstream.asked.length === 2) ids.shift();
    },
  });
  const list = await readCouponList(upstream.ask, 1);
  if (list.outcome !== 'applied') throw new Error('it was not read');
  expect(list.value.coupons.map(({ id }) => id)).toContain(total);
});

it('a list that is sent at once, whatever is requested, is read completely', async () => {
  for (const total of [7, 150]) {
    const { ask, asked } = withCoupons(total, { cap: Infinity, pages: false });
    const list = await readCouponList((page) => ask({ ...page, limit: Infinity }), 1);
    expect(list).toMatchObject({ outcome: 'applied', value: { coupons: { length: total } } });
    expect(asked).toEqual([0, total]);
  }
});

it('an upstream that sends the same full page at another offset has no readable list', async () => {
  expect(await readCouponList(withCoupons(150, { pages: false }).ask, 1)).toMatchObject({
    outcome: 'not_applied',
    detail: expect.stringContaining('the same coupons at every offset') as string,
  });
});

it.each([
  [7, 'applied'],
  [100, 'not_applied'],
] as const)(
  'a list of %i coupons, after which the upstream refuses to read further, is %s',
  async (total, outcome) => {
    const { ask } = withCoupons(total);
    const refused = { ...notApplied('missing', 'no such page'), status: 404 };
    const list = await readCouponList(async (page) => (page.offset > 0 ? refused : await ask(page)), 1);
    expect(list.outcome).toBe(outcome);
  },
);

it('a list with a page that cannot be read is not used, and is requested again', async () => {
  const { ask } = withCoupons(7);
  const throttled = notApplied('throttled', 'later');
  const list = await readCouponList(async (page) => (page.offset > 0 ? throttled : await ask(page)), 1);
  expect(list).toBe(throttled);
});

it('a list without an end is not complete, because the coupon may be on a later page', async () => {
  expect(await readCouponList(withCoupons(Infinity).ask, 1)).toMatchObject({
    outcome: 'not_applied',
    detail: expect.stringContaining('more than 100000 coupons') as string,
  });
});

it('a list with cursors is read by its cursors, however long it is', async () => {
  const asked: UpstreamPage[] = [];
  const pages = 150;
  const ask = async (page: UpstreamPage): Promise<Applied<CouponPage>> => {
    asked.push(page);
    const number = Number(page.cursor ?? 0);
    const ids = Array.from({ length: 100 }, (_, index) => number * 100 + index + 1);
    return {
      outcome: 'applied',
      value: { coupons: ids.map((id) => ({ ...terms, id })), unreadable: [] },
      confirmedAt: 1,
      isCached: false,
      ...(number + 1 < pages && { nextCursor: String(number + 1) }),
    };
  };
  const list = await readCouponList(ask, 1);
  expect(list).toMatchObject({ outcome: 'applied', value: { coupons: { length: 100 * pages } } });
  // Read twice, like every list of several pages, and never past the last page.
  expect(asked.map(({ cursor }) => cursor)).toEqual(
    [1, 2].flatMap(() => [undefined, ...Array.from({ length: pages - 1 }, (_, index) => String(index + 1))]),
  );
});
