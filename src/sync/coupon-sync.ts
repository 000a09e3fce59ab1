import { foldCouponCode, type Coupon } from '../domain/checkout/coupon.ts';
import type { Operation } from '../domain/outbox/operation.ts';
import { isMissing, unreachable, type NotApplied, type Outcome } from '../domain/outbox/outcome.ts';
import { provisionalCoupon } from '../service/outbox/queue/coupon-payload.ts';
import {
  StorageError,
  type Clock,
  type CouponPage,
  type CouponPull,
  type Idempotency,
  type Log,
  type LookupResult,
  type UnreadableCoupon,
  type Upstream,
} from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { SyncPolicy } from '../service/outbox/policy.ts';
import type { Reader } from '../service/tables.ts';
import { persist } from './persist.ts';
import type { Priority } from './upstream-rate.ts';
import type { Uplink } from './uplink.ts';

const pageSize = 100;
/** The most pages of a list that are read. */
const mostPages = 1000;

export type CouponSyncParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  uplink: Uplink;
  policy: () => SyncPolicy;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** Mirrors the upstream's coupons, and sends creations. */
export class CouponSync implements CouponPull {
  readonly #parts: CouponSyncParts;
  #listing: Promise<Outcome<CouponPage>> | null = null;
  /** Those of the last listing that could not be read, by what names them: each is told of once. */
  #unreadable: ReadonlySet<string> = new Set();

  constructor(parts: CouponSyncParts) {
    this.#parts = parts;
  }

  async list(signal: AbortSignal): Promise<LookupResult> {
    signal.throwIfAborted();
    return found(await this.#listWhole('caller'));
  }

  refresh(): void {
    void this.#listWhole('refresh');
  }

  async get(id: number, signal: AbortSignal): Promise<LookupResult> {
    const { upstream } = this.#parts;
    const outcome = await this.#ask('caller', signal, () => upstream.getCoupon(id, signal));
    if (outcome.outcome === 'applied') await this.#keep([outcome.value], outcome.confirmedAt, false);
    return found(outcome);
  }

  async admit(signal: AbortSignal): Promise<'admitted' | 'away' | 'unauthorized'> {
    const { uplink } = this.#parts;
    const admission = await uplink.admit('caller', signal);
    if (!admission.admitted) return 'away';
    if (!uplink.refusedCredentials().includes(null)) return 'admitted';
    uplink.giveBack();
    return 'unauthorized';
  }

  giveBack(): void {
    this.#parts.uplink.giveBack();
  }

  async create(operationId: string, caller: { idempotency: Idempotency | null }): Promise<Outcome<Coupon>> {
    const operation = this.#parts.reader.operations.get(operationId);
    if (operation === null) throw new Error(`there is no operation ${operationId}`);
    return await this.#send(operation, caller);
  }

  /** Sends a queued creation that is committed as in flight. */
  async send(operation: Operation): Promise<void> {
    await this.#send(operation, null);
  }

  async #send(
    operation: Operation,
    caller: { idempotency: Idempotency | null } | null,
  ): Promise<Outcome<Coupon>> {
    const { upstream, uplink, writer, clock, log, policy, lifetime } = this.#parts;
    // Not the caller's signal: a request that was sent is followed to its end.
    const outcome = await upstream.createCoupon(provisionalCoupon(operation), operation, lifetime);
    uplink.observe(outcome, { owner: null, subject: 'coupons' });
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordCouponAnswer', { operationId: operation.id, outcome, caller, policy: policy() }),
    );
    if (recorded.ok && recorded.value.progress.state !== 'delivered') {
      const { progress, lastError } = recorded.value;
      const { id, requestId } = operation;
      const about = { operation: id, state: progress.state, error: lastError, requestId };
      log.warn(about, 'a coupon was not delivered');
    }
    return outcome;
  }

  /** Settles a creation whose answer was lost, by a new listing. */
  async settle(operation: Operation): Promise<void> {
    const { writer, clock, policy, lifetime } = this.#parts;
    // A listing under way may have been answered before the creation arrived.
    await this.#listing;
    const outcome = fromUpstream(await this.#listWhole('push'));
    if (outcome.outcome !== 'applied') {
      await persist(clock, lifetime, () =>
        writer.write('postpone', { operationId: operation.id, outcome, policy: policy() }),
      );
      return;
    }
    const ours = provisionalCoupon(operation).code;
    const { coupons, unreadable } = outcome.value;
    const listed =
      coupons.find(({ code }) => code === ours) ??
      coupons.find(({ code }) => foldCouponCode(code) === operation.subject) ??
      null;
    const isHidden = unreadable.some(
      ({ code }) => code === null || foldCouponCode(code) === operation.subject,
    );
    if (listed === null && isHidden) {
      await persist(clock, lifetime, () =>
        writer.write('postpone', { operationId: operation.id, outcome: unreadableOne, policy: policy() }),
      );
      return;
    }
    const { confirmedAt } = outcome;
    await persist(clock, lifetime, () =>
      writer.write('recordCouponListing', { operationId: operation.id, listed, confirmedAt }),
    );
  }

  #listWhole(priority: Priority): Promise<Outcome<CouponPage>> {
    this.#listing ??= this.#listPages(priority)
      .catch((error: unknown) => unreachable(error instanceof Error ? error.message : 'ended'))
      .finally(() => {
        this.#listing = null;
      });
    return this.#listing;
  }

  async #listPages(priority: Priority): Promise<Outcome<CouponPage>> {
    const { upstream, clock, lifetime } = this.#parts;
    let confirmedAt = clock.now();
    let isCached = false;
    const coupons = new Map<number, Coupon>();
    const unreadable = new Map<string, UnreadableCoupon>();
    let pages = 0;
    // Offsets shift when a coupon is deleted between two pages: a list of several pages is read twice.
    for (let reading = 1; reading === 1 || (reading === 2 && pages > 1); reading += 1) {
      pages = 0;
      const shown = new Set<number | null>();
      for (let isMore = true; isMore && pages < mostPages; pages += 1) {
        const span = { limit: pageSize, offset: pages * pageSize };
        const outcome = await this.#ask(priority, lifetime, () => upstream.listCoupons(span, lifetime));
        if (outcome.outcome !== 'applied') return outcome;
        const page = outcome.value;
        for (const coupon of page.coupons) coupons.set(coupon.id, coupon);
        for (const coupon of page.unreadable) unreadable.set(nameOf(coupon), coupon);
        confirmedAt = Math.min(confirmedAt, outcome.confirmedAt);
        isCached ||= outcome.isCached;
        const ids = [...page.coupons, ...page.unreadable].map(({ id }) => id);
        isMore = ids.length === pageSize;
        if (isMore && ids.every((id) => shown.has(id))) return samePage;
        for (const id of ids) shown.add(id);
      }
    }
    const listed = { coupons: [...coupons.values()], unreadable: [...unreadable.values()] };
    this.#tellUnreadable(listed.unreadable);
    await this.#mirror(listed, confirmedAt, priority);
    return { outcome: 'applied', value: listed, confirmedAt, isCached };
  }

  #tellUnreadable(unreadable: readonly UnreadableCoupon[]): void {
    for (const coupon of unreadable) {
      if (this.#unreadable.has(nameOf(coupon))) continue;
      const { id, fault: error } = coupon;
      this.#parts.log.warn({ coupon: id, error }, 'a coupon of the upstream cannot be read: it is left out');
    }
    this.#unreadable = new Set(unreadable.map(nameOf));
  }

  /** On a full disk the mirror stays as it is: what was listed settles creations all the same. */
  async #mirror(listed: CouponPage, confirmedAt: number, priority: Priority): Promise<void> {
    try {
      await this.#keep(listed.coupons, confirmedAt, true);
      await this.#dropMissing(listed, priority);
    } catch (error) {
      if (!(error instanceof StorageError) || error.fault !== 'full') throw error;
    }
  }

  /** A coupon that the list no longer shows leaves the mirror only when the upstream says so itself. */
  async #dropMissing({ coupons, unreadable }: CouponPage, priority: Priority): Promise<void> {
    const { reader, writer, upstream, lifetime } = this.#parts;
    const there = new Set([...coupons, ...unreadable].map(({ id }) => id));
    for (let offset = 0; offset < mostPages * pageSize; offset += pageSize) {
      const page = reader.mirror.list({ limit: pageSize, offset });
      const gone = page.filter(({ coupon }) => coupon.id > 0 && !there.has(coupon.id));
      for (const { coupon } of gone) {
        const outcome = await this.#ask(priority, lifetime, () => upstream.getCoupon(coupon.id, lifetime));
        if (isMissing(outcome)) await writer.write('forgetCoupon', { id: coupon.id });
      }
      if (page.length < pageSize) return;
    }
  }

  async #keep(coupons: readonly Coupon[], confirmedAt: number, whole: boolean): Promise<void> {
    await this.#parts.writer.write('mirrorCoupons', { coupons, confirmedAt, whole });
  }

  async #ask<Value>(
    priority: Priority,
    signal: AbortSignal,
    request: () => Promise<Outcome<Value>>,
  ): Promise<Outcome<Value>> {
    const { uplink } = this.#parts;
    const admission = await uplink.admit(priority, signal);
    if (!admission.admitted) return unreachable(admission.detail);
    if (uplink.refusedCredentials().includes(null)) {
      uplink.giveBack();
      return refusedKey;
    }
    const outcome = await request();
    uplink.observe(outcome, { owner: null, subject: 'coupons' });
    return outcome;
  }
}

/** The outcome; one that came from a cache settles nothing and counts as not applied. */
function fromUpstream<Value>(outcome: Outcome<Value>): Outcome<Value> {
  if (outcome.outcome !== 'applied' || !outcome.isCached) return outcome;
  const detail = 'a cache on the way answered, not the upstream';
  return { outcome: 'not_applied', reason: 'cached', status: null, detail, retryAfterMs: null };
}

/** What tells an unreadable coupon from the others of the list. */
function nameOf({ id, code }: UnreadableCoupon): string {
  return `${id} ${code}`;
}

function found(outcome: Outcome<unknown>): LookupResult {
  if (outcome.outcome === 'applied') return { found: 'known' };
  return isMissing(outcome) ? { found: 'missing' } : { found: 'unreachable', detail: outcome.detail };
}

/** The list has one that cannot be read, and it may be the one that was looked for. */
const unreadableOne: NotApplied = {
  outcome: 'not_applied',
  reason: 'rejected',
  status: null,
  detail: 'a coupon in the list of the upstream cannot be read, and may be this one',
  retryAfterMs: null,
};

/** The upstream does not heed the offset: nobody can tell what else its list has. */
const samePage: NotApplied = {
  outcome: 'not_applied',
  reason: 'rejected',
  status: null,
  detail: 'the upstream answers the same coupons at another offset, so that its list cannot be read whole',
  retryAfterMs: null,
};

/** After a 401 or 403, stop using this API key until a probe succeeds. */
const refusedKey: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unauthorized',
  status: null,
  detail: 'the upstream refused it, and it is not asked again yet',
  retryAfterMs: null,
};
