import {
  notApplied,
  type Ambiguous,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type { Page } from '../domain/page.ts';
import type { CouponPage, UnreadableCoupon } from '../service/ports.ts';

/** The most coupons that are asked for at once (specification 4.2). */
const mostAtOnce = 100;
/** The most pages of a list that are read. */
const mostPages = 1000;

/** What an upstream's list shows. */
export type CouponList = CouponPage & {
  /** Why the upstream may have more than it shows; null: this is all. */
  gap: NotApplied | null;
};

/** Asks the upstream for one page of its coupons. */
type AskPage = (page: Page) => Promise<Outcome<CouponPage>>;

/** What was read from the start of a list: so many coupons; `gap`: why what is behind them could not be. */
type Reading = { pages: readonly Applied<CouponPage>[]; count: number; gap: NotApplied | null };

/** Reads the upstream's whole list of coupons; `begunAt`: when, in epoch ms. */
export async function readCouponList(ask: AskPage, begunAt: number): Promise<Outcome<CouponList>> {
  const first = await readPages(ask, Infinity);
  if ('outcome' in first) return first;
  // Offsets shift when a coupon is deleted between two pages, so what was read is read again.
  const second = await readPages(ask, first.gap === null ? first.count : 0);
  if ('outcome' in second) return second;
  return join([...first.pages, ...second.pages], first.gap ?? second.gap, begunAt);
}

/** What tells an unreadable coupon from the others of the list. */
export function nameOfUnreadable({ id, code }: UnreadableCoupon): string {
  return `${id} ${code}`;
}

/**
 * Reads page by page until an empty one, or so many coupons: a page that is not full may be all that an upstream gives
 * at once. Of one that is too large, a tenth is asked for.
 */
async function readPages(ask: AskPage, most: number): Promise<Reading | NotApplied | Ambiguous> {
  const pages: Applied<CouponPage>[] = [];
  const shown = new Set<number | null>();
  let [limit, count, isBehindFull] = [mostAtOnce, 0, true];
  while (count < most) {
    if (pages.length === mostPages) return tooLong(count);
    const page = await ask({ limit, offset: count });
    if (page.outcome === 'ambiguous' && page.isTooLarge === true && limit > 1) {
      limit /= 10;
      continue;
    }
    if (page.outcome !== 'applied') return isBehindFull || !isNo(page) ? page : { pages, count, gap: page };
    const ids = [...page.value.coupons, ...page.value.unreadable].map(({ id }) => id);
    pages.push(page);
    if (ids.length === 0) break;
    if (ids.every((id) => shown.has(id))) return isBehindFull ? samePage : { pages, count, gap: samePage };
    for (const id of ids) shown.add(id);
    count += ids.length;
    isBehindFull = ids.length === limit;
  }
  return { pages, count, gap: null };
}

/** Whether the upstream refuses this very page, as some do behind the end of their list. */
function isNo(outcome: NotApplied | Ambiguous): outcome is NotApplied {
  if (outcome.outcome === 'ambiguous') return false;
  return outcome.reason === 'refused' || outcome.reason === 'missing' || outcome.reason === 'rejected';
}

/** The upstream does not heed the offset: nobody can tell what else its list has. */
const samePage = notApplied(
  'rejected',
  'the upstream answers the same coupons at another offset, so that its list cannot be read whole',
);

/** What is not on the pages that were read may be there all the same. */
function tooLong(count: number): NotApplied {
  return notApplied(
    'rejected',
    `the upstream has more than ${count} coupons, so that its list cannot be read whole`,
  );
}

/** One list of all pages; of a coupon on several of them, what the last one says. */
function join(
  pages: readonly Applied<CouponPage>[],
  gap: NotApplied | null,
  begunAt: number,
): Applied<CouponList> {
  const coupons = pages.flatMap(({ value }) => value.coupons);
  const unreadable = pages.flatMap(({ value }) => value.unreadable);
  return {
    outcome: 'applied',
    value: {
      coupons: [...new Map(coupons.map((coupon) => [coupon.id, coupon])).values()],
      unreadable: [...new Map(unreadable.map((coupon) => [nameOfUnreadable(coupon), coupon])).values()],
      gap,
    },
    confirmedAt: Math.min(begunAt, ...pages.map(({ confirmedAt }) => confirmedAt)),
    isCached: pages.some(({ isCached }) => isCached),
  };
}
