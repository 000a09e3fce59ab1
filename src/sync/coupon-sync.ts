import { foldCouponCode, type Coupon } from '../domain/checkout/coupon.ts';
import type { Operation } from '../domain/outbox/operation.ts';
import {
  notSent,
  isHeldBack,
  isMissing,
  notApplied,
  type Ambiguous,
  type Applied,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type {
  Clock,
  CouponLookup,
  CouponPage,
  UpstreamPage,
  CouponFetch,
  Idempotency,
  Log,
  UnreadableCoupon,
  Upstream,
} from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { Reader } from '../service/tables.ts';
import { persist, persistIfRoom } from './waiting.ts';
import type { Priority } from './rate-limiter.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';
import { provisionalCoupon } from '../domain/outbox/coupon-payload.ts';

type CouponSyncParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  limiter: UpstreamLimiter;
  policy: () => SyncPolicy;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** Mirrors the upstream's coupons, and sends creations. */
export class CouponSync implements CouponFetch {
  readonly #parts: CouponSyncParts;
  #listing: Promise<Outcome<CouponPage>> | null = null;
  /** The unreadable coupons of the last list: each is logged once. */
  #unreadable: readonly UnreadableCoupon[] = [];

  constructor(parts: CouponSyncParts) {
    this.#parts = parts;
  }

  async list(signal: AbortSignal): Promise<CouponLookup<readonly Coupon[]>> {
    signal.throwIfAborted();
    return toLookup(await this.#listWhole('caller'), ({ coupons }) => coupons);
  }

  refresh(): void {
    void this.#listWhole('refresh');
  }

  unreadable(): readonly UnreadableCoupon[] {
    return this.#unreadable;
  }

  async get(id: number, signal: AbortSignal): Promise<CouponLookup<Coupon>> {
    const { upstream } = this.#parts;
    const outcome = await this.#ask('caller', signal, () => upstream.getCoupon(id, signal));
    if (outcome.outcome === 'applied') {
      const { value, confirmedAt } = outcome;
      await persistIfRoom(() =>
        this.#parts.writer.write('mirrorCoupons', { coupons: [value], confirmedAt, extent: 'some' }),
      );
    }
    return toLookup(outcome, (coupon) => coupon);
  }

  async admit(signal: AbortSignal): Promise<'admitted' | 'away' | 'unauthorized'> {
    const { limiter } = this.#parts;
    const admission = await limiter.admit('caller', signal);
    if (!admission.admitted) return 'away';
    if (!limiter.refusedCredentials().includes(null)) return 'admitted';
    limiter.giveBack();
    return 'unauthorized';
  }

  giveBack(): void {
    this.#parts.limiter.giveBack();
  }

  isRefused(): boolean {
    return this.#parts.limiter.refusedCredentials().includes(null);
  }

  isReachable(): boolean {
    const { limiter } = this.#parts;
    return limiter.admission().admitted && limiter.isAccepted(null);
  }

  async create(operationId: string, caller: { idempotency: Idempotency | null }): Promise<Outcome<Coupon>> {
    const operation = this.#parts.reader.operations.get(operationId);
    if (operation === null) throw new Error(`there is no operation ${operationId}`);
    const outcome = await this.#request(operation);
    try {
      await this.#record(operation, outcome, caller);
    } catch (error) {
      this.#parts.log.error(
        { err: error, operation: operation.id },
        'the response to a coupon creation was not stored',
      );
    }
    return outcome;
  }

  /** Sends a queued creation that is committed as in flight. */
  async send(operation: Operation): Promise<void> {
    await this.#record(operation, await this.#request(operation), null);
  }

  async #request(operation: Operation): Promise<Outcome<Coupon>> {
    const { upstream, limiter, clock, lifetime } = this.#parts;
    // The caller's signal does not end the request: a request that was sent is followed to its end.
    const sentAt = clock.monotonic();
    const outcome = await upstream.createCoupon(provisionalCoupon(operation), operation, lifetime);
    limiter.observe(outcome, { owner: null, subject: 'coupons', sentAt });
    return outcome;
  }

  async #record(
    operation: Operation,
    outcome: Outcome<Coupon>,
    caller: { idempotency: Idempotency | null } | null,
  ): Promise<void> {
    const { writer, clock, log, policy, lifetime } = this.#parts;
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordCouponResponse', { operationId: operation.id, outcome, caller, policy: policy() }),
    );
    if (recorded.ok) {
      const { id, requestId, progress, lastError: error } = recorded.value;
      const about = { operation: id, state: progress.state, error, requestId };
      // A cancelled creation was refused and removed.
      if (!['delivered', 'cancelled'].includes(progress.state))
        log.warn(about, 'a coupon creation was not delivered');
    }
  }

  /** Reconciles a creation whose response was lost with a new list. */
  async reconcile(operation: Operation): Promise<void> {
    const { writer, clock, policy, lifetime } = this.#parts;
    const postpone = (outcome: NotApplied | Ambiguous): Promise<unknown> =>
      persist(clock, lifetime, () =>
        writer.write('postpone', { operationId: operation.id, outcome, policy: policy() }),
      );
    // A list that is being read may have been answered before the creation arrived.
    await this.#listing;
    const outcome = withoutCached(await this.#listWhole('push'));
    // The creation stays due: it is looked for as soon as the limiter admits requests.
    if (isHeldBack(outcome)) return;
    if (outcome.outcome !== 'applied') {
      await postpone(outcome);
      return;
    }
    const sentCode = provisionalCoupon(operation).code;
    const { coupons, unreadable } = outcome.value;
    const listed =
      coupons.find(({ code }) => code === sentCode) ??
      coupons.find(({ code }) => foldCouponCode(code) === operation.subject) ??
      null;
    const candidate = unreadable.find(
      ({ code }) => code === null || foldCouponCode(code) === operation.subject,
    );
    if (listed === null && candidate !== undefined) {
      await postpone(maybeUnreadable(candidate));
      return;
    }
    const { confirmedAt } = outcome;
    await persist(clock, lifetime, () =>
      writer.write('recordCouponListing', { operationId: operation.id, listed, confirmedAt }),
    );
  }

  #listWhole(priority: Priority): Promise<Outcome<CouponPage>> {
    this.#listing ??= this.#readList(priority)
      .catch((error: unknown) => notApplied('unreachable', error instanceof Error ? error.message : 'ended'))
      .finally(() => {
        this.#listing = null;
      });
    return this.#listing;
  }

  async #readList(priority: Priority): Promise<Outcome<CouponPage>> {
    const { upstream, clock, lifetime } = this.#parts;
    const ask = (page: UpstreamPage): Promise<Outcome<CouponPage>> =>
      this.#ask(priority, lifetime, () => upstream.listCoupons(page, lifetime));
    const outcome = await readCouponList(ask, clock.now());
    if (outcome.outcome !== 'applied') return outcome;
    this.#logUnreadable(outcome.value.unreadable);
    await this.#mirror(outcome, priority);
    return outcome;
  }

  #logUnreadable(unreadable: readonly UnreadableCoupon[]): void {
    const known = new Set(this.#unreadable.map(unreadableName));
    for (const coupon of unreadable) {
      if (known.has(unreadableName(coupon))) continue;
      const { id, fault: error } = coupon;
      this.#parts.log.warn({ coupon: id, error }, 'a coupon of the upstream cannot be read and is left out');
    }
    this.#unreadable = unreadable;
  }

  /** Stores the list in the mirror. On a full disk the mirror stays as it is, and creations are still reconciled. */
  async #mirror({ value, confirmedAt, isCached }: Applied<CouponPage>, priority: Priority): Promise<void> {
    const { coupons, unreadable } = value;
    // A coupon that a cache does not know yet, or that cannot be read, may exist.
    const extent = isCached || unreadable.length > 0 ? 'list' : 'whole';
    await persistIfRoom(async () => {
      await this.#parts.writer.write('mirrorCoupons', { coupons, confirmedAt, extent });
      await this.#dropMissing(value, priority);
    });
  }

  /** A coupon that the list no longer shows leaves the mirror only when the upstream answers 404 to its id. */
  async #dropMissing({ coupons, unreadable }: CouponPage, priority: Priority): Promise<void> {
    const { reader, writer, upstream, lifetime } = this.#parts;
    const listedIds = new Set([...coupons, ...unreadable].map(({ id }) => id));
    for (const id of reader.mirror.shownIds().filter((each) => !listedIds.has(each))) {
      const outcome = await this.#ask(priority, lifetime, () => upstream.getCoupon(id, lifetime));
      if (isMissing(outcome)) await writer.write('forgetCoupon', { id });
    }
  }

  async #ask<Value>(
    priority: Priority,
    signal: AbortSignal,
    request: () => Promise<Outcome<Value>>,
  ): Promise<Outcome<Value>> {
    const { limiter, clock } = this.#parts;
    const admission = await limiter.admit(priority, signal);
    if (!admission.admitted) return notSent('unreachable', admission.detail);
    if (limiter.refusedCredentials().includes(null)) {
      limiter.giveBack();
      return refusedKey;
    }
    const sentAt = clock.monotonic();
    const outcome = await request();
    limiter.observe(outcome, { owner: null, subject: 'coupons', sentAt });
    return outcome;
  }
}

/** The outcome; a cached response reconciles nothing and counts as not applied. */
function withoutCached<Value>(outcome: Outcome<Value>): Outcome<Value> {
  if (outcome.outcome !== 'applied' || !outcome.isCached) return outcome;
  return notApplied('cached', 'a cache answered, not the upstream');
}

function toLookup<Said, Value>(outcome: Outcome<Said>, valueOf: (said: Said) => Value): CouponLookup<Value> {
  if (outcome.outcome === 'applied') {
    return { found: 'known', value: valueOf(outcome.value), confirmedAt: outcome.confirmedAt };
  }
  return isMissing(outcome) ? { found: 'missing' } : { found: 'unreachable', detail: outcome.detail };
}

/** An unreadable coupon of the list may be the one that was looked for. */
function maybeUnreadable({ fault }: UnreadableCoupon): NotApplied {
  const what = 'a coupon in the list of the upstream cannot be read, and may be this one';
  return notApplied('rejected', `${what}: ${fault}`);
}

/** After a 401 or 403, this API key is not used until a probe succeeds. */
const refusedKey = notSent(
  'unauthorized',
  'the upstream refused the API key, which is not used until it is tested again',
);

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
function unreadableName({ id, code }: UnreadableCoupon): string {
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
  return {
    outcome: 'applied',
    value: {
      coupons: [...new Map(coupons.map((coupon) => [coupon.id, coupon])).values()],
      unreadable: [...new Map(unreadable.map((coupon) => [unreadableName(coupon), coupon])).values()],
    },
    confirmedAt: Math.min(begunAt, ...pages.map(({ confirmedAt }) => confirmedAt)),
    isCached: pages.some(({ isCached }) => isCached),
  };
}
