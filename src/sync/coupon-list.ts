import {
  notApplied,
  type Ambiguous,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type { CouponPage, UnreadableCoupon, UpstreamPage } from '../service/ports.ts';

/** The most coupons that are asked for at once (specification 4.2). */
const mostAtOnce = 100;
/** The most pages of a list that are read. */
const mostPages = 1000;

/** Asks the upstream for one page of its coupons. */
type AskPage = (page: UpstreamPage) => Promise<Outcome<CouponPage>>;

type Pages = readonly Applied<CouponPage>[];

/** Reads the upstream's whole list of coupons; `begunAt`: when, in epoch ms. */
export async function readCouponList(ask: AskPage, begunAt: number): Promise<Outcome<CouponPage>> {
  const first = await readPages(ask);
  if ('outcome' in first) return first;
  // Offsets shift when a coupon is deleted between two pages: a list of several pages is read twice.
  const second = first.length > 1 ? await readPages(ask) : [];
  return 'outcome' in second ? second : join([...first, ...second], begunAt);
}

/** What tells an unreadable coupon from the others of the list. */
export function nameOfUnreadable({ id, code }: UnreadableCoupon): string {
  return `${id} ${code}`;
}

/**
 * Reads page by page until one brings nothing: a page that is not full may be all that an upstream gives at once. Of one
 * that is too large, a tenth is asked for.
 */
async function readPages(ask: AskPage): Promise<Pages | NotApplied | Ambiguous> {
  const pages: Applied<CouponPage>[] = [];
  const shown = new Set<number | null>();
  let [limit, count, isFull] = [mostAtOnce, 0, false];
  let cursor: string | undefined;
  while (pages.length < mostPages) {
    const page = await ask({ limit, offset: count, cursor });
    if (page.outcome === 'ambiguous' && page.isTooLarge === true && limit > 1) {
      limit /= 10;
      continue;
    }
    const isBehindEnd = pages.length > 0 && !isFull;
    if (page.outcome !== 'applied') return isBehindEnd && isNo(page) ? pages : page;
    const ids = [...page.value.coupons, ...page.value.unreadable].map(({ id }) => id);
    if (ids.length === 0) return isBehindEnd ? pages : [...pages, page];
    // All at once, whatever is asked for, are all there are; of a full page nobody can tell.
    if (ids.every((id) => shown.has(id))) return isBehindEnd ? pages : samePage;
    pages.push(page);
    for (const id of ids) shown.add(id);
    count += ids.length;
    isFull = ids.length === limit;
    // An upstream that tells cursors tells the end of its list too, and limits how far an offset goes.
    if (cursor !== undefined && page.nextCursor === undefined) return pages;
    cursor = page.nextCursor;
  }
  return tooLong(count);
}

/** Whether the upstream refuses this very page, as some do behind the end of their list. */
function isNo(outcome: NotApplied | Ambiguous): boolean {
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
function join(pages: Pages, begunAt: number): Applied<CouponPage> {
  const coupons = pages.flatMap(({ value }) => value.coupons);
  const unreadable = pages.flatMap(({ value }) => value.unreadable);
  return {
    outcome: 'applied',
    value: {
      coupons: [...new Map(coupons.map((coupon) => [coupon.id, coupon])).values()],
      unreadable: [...new Map(unreadable.map((coupon) => [nameOfUnreadable(coupon), coupon])).values()],
    },
    confirmedAt: Math.min(begunAt, ...pages.map(({ confirmedAt }) => confirmedAt)),
    isCached: pages.some(({ isCached }) => isCached),
  };
}
