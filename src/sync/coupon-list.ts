import {
  notApplied,
  type Ambiguous,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type { Page } from '../domain/page.ts';
import type { CouponPage, UnreadableCoupon } from '../service/ports.ts';

const pageSize = 100;
/** The most pages of a list that are read. */
const mostPages = 1000;

/** Asks the upstream for one page of its coupons. */
type AskPage = (page: Page) => Promise<Outcome<CouponPage>>;

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

/** Reads page by page until one is not full. */
async function readPages(ask: AskPage): Promise<readonly Applied<CouponPage>[] | NotApplied | Ambiguous> {
  const pages: Applied<CouponPage>[] = [];
  const shown = new Set<number | null>();
  while (pages.length < mostPages) {
    const page = await ask({ limit: pageSize, offset: pages.length * pageSize });
    if (page.outcome !== 'applied') return page;
    pages.push(page);
    const ids = [...page.value.coupons, ...page.value.unreadable].map(({ id }) => id);
    if (ids.length !== pageSize) return pages;
    if (ids.every((id) => shown.has(id))) return samePage;
    for (const id of ids) shown.add(id);
  }
  return tooLong;
}

/** The upstream does not heed the offset: nobody can tell what else its list has. */
const samePage = notApplied(
  'rejected',
  'the upstream answers the same coupons at another offset, so that its list cannot be read whole',
);

/** What is not on the pages that were read may be there all the same. */
const tooLong = notApplied(
  'rejected',
  `the upstream has more than ${mostPages * pageSize} coupons, so that its list cannot be read whole`,
);

/** One list of all pages; of a coupon on several of them, what the last one says. */
function join(pages: readonly Applied<CouponPage>[], begunAt: number): Applied<CouponPage> {
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
