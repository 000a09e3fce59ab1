import {
  notApplied,
  type Ambiguous,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type { CouponPage, UnreadableCoupon, UpstreamPage } from '../service/ports.ts';

/** How many coupons a page may have (specification 4.2). */
const maxPageSize = 100;
/** How many pages of a list are read. */
const maxPages = 1000;

/** Requests one page of the upstream's coupons. */
type AskPage = (page: UpstreamPage) => Promise<Outcome<CouponPage>>;

type Pages = readonly Applied<CouponPage>[];

/** Reads the upstream's whole list of coupons; `begunAt`: when the read began, in epoch ms. */
export async function readCouponList(ask: AskPage, begunAt: number): Promise<Outcome<CouponPage>> {
  const first = await readPages(ask);
  if ('outcome' in first) return first;
  // Offsets shift when a coupon is deleted between two pages, so a list of several pages is read twice.
  const second = first.length > 1 ? await readPages(ask) : [];
  return 'outcome' in second ? second : join([...first, ...second], begunAt);
}

/** Identifies an unreadable coupon. */
export function unreadableName({ id, code }: UnreadableCoupon): string {
  return `${id} ${code}`;
}

/**
 * Reads page by page until a page is empty: a page that is not full may be as much as the upstream gives at once. If a
 * page is too large, a tenth is requested.
 */
async function readPages(ask: AskPage): Promise<Pages | NotApplied | Ambiguous> {
  const pages: Applied<CouponPage>[] = [];
  const seenIds = new Set<number | null>();
  let [limit, count, isFull] = [maxPageSize, 0, false];
  let cursor: string | undefined;
  while (pages.length < maxPages) {
    const page = await ask({ limit, offset: count, cursor });
    if (page.outcome === 'ambiguous' && page.isTooLarge === true && limit > 1) {
      limit /= 10;
      continue;
    }
    const isBehindEnd = pages.length > 0 && !isFull;
    if (page.outcome !== 'applied') return isBehindEnd && refusesPage(page) ? pages : page;
    const ids = [...page.value.coupons, ...page.value.unreadable].map(({ id }) => id);
    if (ids.length === 0) return isBehindEnd ? pages : [...pages, page];
    // The upstream ignores the offset. A page that is not full is the whole list; behind a full page there may be more.
    if (ids.every((id) => seenIds.has(id))) return isBehindEnd ? pages : repeatedPage;
    pages.push(page);
    for (const id of ids) seenIds.add(id);
    count += ids.length;
    isFull = ids.length === limit;
    // An upstream with cursors also says where the list ends, and limits offsets.
    if (cursor !== undefined && page.nextCursor === undefined) return pages;
    cursor = page.nextCursor;
  }
  return tooLong(count);
}

/** Whether the upstream refuses this page, as some do behind the end of their list. */
function refusesPage(outcome: NotApplied | Ambiguous): boolean {
  if (outcome.outcome === 'ambiguous') return false;
  return outcome.reason === 'refused' || outcome.reason === 'missing' || outcome.reason === 'rejected';
}

/** The upstream ignores the offset, so the rest of its list is unknown. */
const repeatedPage = notApplied(
  'rejected',
  'the upstream returns the same coupons at every offset, so its list cannot be read completely',
);

/** A coupon that is not on the pages that were read may exist. */
function tooLong(count: number): NotApplied {
  return notApplied(
    'rejected',
    `the upstream has more than ${count} coupons, so its list cannot be read completely`,
  );
}

/** Joins the pages; if a coupon is on several pages, the last one counts. */
function join(pages: Pages, begunAt: number): Applied<CouponPage> {
  const coupons = pages.flatMap(({ value }) => value.coupons);
  const unreadable = pages.flatMap(({ value }) => value.unreadable);
  const last = pages.at(-1);
  return {
    outcome: 'applied',
    value: {
      coupons: [...new Map(coupons.map((coupon) => [coupon.id, coupon])).values()],
      unreadable: [...new Map(unreadable.map((coupon) => [unreadableName(coupon), coupon])).values()],
    },
    confirmedAt: Math.min(begunAt, ...pages.map(({ confirmedAt }) => confirmedAt)),
    isCached: pages.some(({ isCached }) => isCached),
    ...(last?.instance !== undefined && { instance: last.instance }),
    ...(last?.epoch !== undefined && { epoch: last.epoch }),
  };
}
