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
import { isPlain, isUpstreamKnown, keyedAs } from '../service/outbox/upstream/identity.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { Reader } from '../service/tables.ts';
import { persist, persistIfRoom } from './waiting.ts';
import type { Priority } from './rate-limiter.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';
import { provisionalCoupon, sentRedemption } from '../domain/outbox/coupon-payload.ts';
import { readCouponList, unreadableName } from './coupon-list.ts';

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

/** Mirrors the upstream's coupons, and sends their creations, redemptions and voids. */
export class CouponSync implements CouponFetch {
  readonly #parts: CouponSyncParts;
  #listing: Promise<Outcome<CouponPage>> | null = null;
  /** How many creations were answered. */
  #answered = 0;
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
        this.#parts.writer.write('mirrorCoupons', {
          coupons: [value],
          confirmedAt,
          extent: 'some',
          upstream: upstreamIn(outcome),
        }),
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

  /** Sends a queued change that is committed as in flight. */
  async send(operation: Operation): Promise<void> {
    const { upstream, reader, limiter, lifetime } = this.#parts;
    if (operation.kind === 'create_coupon') {
      const wasKnown = isUpstreamKnown(reader);
      if (!wasKnown) await this.#listWhole('delivery');
      // As soon as the upstream is known to be a Latchkey, the creation is sent under its id. The list may have brought a
      // `Retry-After`.
      const isSendable =
        wasKnown || (isPlain(reader) && (await limiter.admit('delivery', lifetime)).admitted);
      await this.#record(operation, isSendable ? await this.#request(operation) : unknownUpstream, null);
      return;
    }
    const { subject: order, requestId } = operation;
    const about = { order, requestId, ...keyedAs(reader, operation) };
    if (operation.kind === 'void') {
      const outcome = await this.#observed(order, () => upstream.voidRedemption(about, lifetime));
      await this.#recordRedemption(operation, { outcome, wasAnswered: false, mayPrecedeCoupon: false });
      return;
    }
    const redemption = { ...about, ...sentRedemption(operation) };
    const wasAnswered = redemption.answeredAt !== null;
    const mayPrecedeCoupon = reader.operations.tail(foldCouponCode(redemption.cart.code), 'coupon') !== null;
    const outcome = await this.#observed(order, () => upstream.redeem(redemption, lifetime));
    await this.#recordRedemption(operation, { outcome, wasAnswered, mayPrecedeCoupon });
  }

  async #recordRedemption(
    { id: operationId }: Operation,
    answer: Pick<CommandOf<'recordRedemptionResponse'>, 'outcome' | 'wasAnswered' | 'mayPrecedeCoupon'>,
  ): Promise<void> {
    const { writer, clock, log, policy, lifetime } = this.#parts;
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordRedemptionResponse', { operationId, ...answer, policy: policy() }),
    );
    if (!recorded.ok) return;
    const { id, requestId, progress, lastError: error } = recorded.value;
    if (['delivered', 'cancelled'].includes(progress.state)) return;
    log.warn({ operation: id, state: progress.state, error, requestId }, 'a redemption was not delivered');
  }

  async #request(operation: Operation): Promise<Outcome<Coupon>> {
    const { upstream, reader, lifetime } = this.#parts;
    const about = { requestId: operation.requestId, ...keyedAs(reader, operation) };
    return await this.#observed('coupons', () =>
      upstream.createCoupon(provisionalCoupon(operation), about, lifetime),
    );
  }

  /** The caller's signal does not end the request: a request that was sent is followed to its end. */
  async #observed<Value>(subject: string, request: () => Promise<Outcome<Value>>): Promise<Outcome<Value>> {
    const { limiter, clock } = this.#parts;
    const sentAt = clock.monotonic();
    const outcome = await request();
    limiter.observe(outcome, { owner: null, subject, sentAt });
    return outcome;
  }

  async #record(
    operation: Operation,
    outcome: Outcome<Coupon>,
    caller: { idempotency: Idempotency | null } | null,
  ): Promise<void> {
    const { reader, writer, clock, log, policy, lifetime } = this.#parts;
    this.#answered += 1;
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordCouponResponse', { operationId: operation.id, outcome, caller, policy: policy() }),
    );
    // The mirror lacks the coupon that has the code. An agent below looks for it here.
    const isTaken = outcome.outcome === 'not_applied' && outcome.code === 'coupon_code_taken';
    if (isTaken && reader.mirror.byCode(operation.subject) === null) this.refresh();
    if (recorded.ok) {
      const { id, requestId, progress, lastError: error } = recorded.value;
      const about = { operation: id, state: progress.state, error, requestId };
      // A cancelled creation was refused and removed.
      if (!['delivered', 'cancelled'].includes(progress.state))
        log.warn(about, 'a coupon creation was not delivered');
    }
  }

  /**
   * Reconciles a creation whose response was lost with a new list. For any other change, the list shows whether the upstream
   * is a Latchkey.
   */
  async reconcile(operation: Operation): Promise<void> {
    const { reader, writer, clock, policy, lifetime } = this.#parts;
    const postpone = (outcome: NotApplied | Ambiguous): Promise<unknown> =>
      persist(clock, lifetime, () =>
        writer.write('postpone', { operationId: operation.id, outcome, policy: policy() }),
      );
    // A list that is being read may have been answered before the creation arrived.
    await this.#listing;
    const outcome = withoutCached(await this.#listWhole('delivery'));
    // The creation stays due: it is looked for as soon as the limiter admits requests.
    if (isHeldBack(outcome)) return;
    if (outcome.outcome !== 'applied') {
      await postpone(outcome);
      return;
    }
    if (operation.progress.state !== 'uncertain') {
      if (!isUpstreamKnown(reader)) await postpone(unknownUpstream);
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
    const answered = this.#answered;
    const outcome = await readCouponList(ask, clock.now());
    if (outcome.outcome !== 'applied') return outcome;
    this.#logUnreadable(outcome.value.unreadable);
    await this.#mirror(outcome, { priority, isOvertaken: answered !== this.#answered });
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

  /**
   * Stores the list in the mirror. On a full disk the mirror stays as it is, and creations are still reconciled. `isOvertaken`: a
   * creation was answered since the list was begun.
   */
  async #mirror(
    list: Applied<CouponPage>,
    { priority, isOvertaken }: { priority: Priority; isOvertaken: boolean },
  ): Promise<void> {
    const { value, confirmedAt, isCached } = list;
    const { coupons, unreadable } = value;
    const upstream = upstreamIn(list);
    // A coupon that a cache does not know yet, that cannot be read, or that is newer than the list may exist.
    const extent = isCached || unreadable.length > 0 || isOvertaken ? 'list' : 'whole';
    await persistIfRoom(async () => {
      await this.#parts.writer.write('mirrorCoupons', { coupons, confirmedAt, extent, upstream });
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
    const { limiter } = this.#parts;
    const admission = await limiter.admit(priority, signal);
    if (!admission.admitted) return notSent('unreachable', admission.detail);
    if (limiter.refusedCredentials().includes(null)) {
      limiter.giveBack();
      return refusedKey;
    }
    return await this.#observed('coupons', request);
  }
}

/** Null: a cache has answered. */
function upstreamIn({
  isCached,
  instance,
  epoch,
}: Applied<unknown>): Pick<Applied<unknown>, 'epoch' | 'instance'> | null {
  if (isCached) return null;
  return { ...(instance !== undefined && { instance }), ...(epoch !== undefined && { epoch }) };
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

/** As after the answer of a cache, the next attempt may show more. */
const unknownUpstream = notApplied('cached', 'the upstream has not shown yet whether it is a Latchkey');

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
