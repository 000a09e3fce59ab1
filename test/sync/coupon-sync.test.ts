import { describe, expect, it, vi } from 'vitest';
import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import { notApplied, type Outcome } from '../../src/domain/outbox/outcome.ts';
import {
  StorageError,
  type CouponPage,
  type UnreadableCoupon,
  type Upstream,
} from '../../src/service/ports.ts';
import { mirroredSince } from '../../src/service/agent/mirror.ts';
import { CouponSync } from '../../src/sync/coupon-sync.ts';
import { UpstreamLimiter } from '../../src/sync/upstream-limiter.ts';
import { HeldLists } from '../support/harness/held-lists.ts';
import { AgentHarness, lost, minute, valueOf } from '../support/harness/service-harness.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';
import { silent, uncounted } from '../support/silent-log.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const forEver = new AbortController().signal;
const terms = buildTerms({ code: 'Spring' });

/** An agent's coupons over an upstream that answers a listing when the test lets it. */
class Office extends AgentHarness {
  readonly time: VirtualTime = new VirtualTime();
  readonly lists: HeldLists = new HeldLists();
  readonly listings: ((coupons: Coupon[], ageMs?: number) => Promise<void>)[] = [];
  /** The coupons of each page that cannot be parsed. */
  unreadable: readonly UnreadableCoupon[] = [];
  readonly warnings: unknown[] = [];

  async open(): Promise<CouponSync> {
    await this.start();
    const clock = this.time.clock({ wall: this.monotonic });
    const limiter = new UpstreamLimiter({
      clock,
      log: silent,
      meter: uncounted,
      settings: () => ({
        rate: 100,
        breaker: { failures: 5, openMs: minute },
        productIds: [],
        productKeyOf: (id) => id,
        hasApiKey: true,
      }),
      onRecovery: () => undefined,
      onChange: () => undefined,
      onRetryAfter: () => undefined,
      lifetime: forEver,
    });
    return new CouponSync({
      reader: this.store,
      writer: this.writer,
      upstream: this.#upstream(),
      clock,
      log: { ...silent, warn: (fields) => this.warnings.push(fields) },
      limiter,
      policy: () => this.policy,
      lifetime: forEver,
    });
  }

  /** A creation whose response was lost, after its reconcile delay. */
  async lose(): Promise<string> {
    const command = { terms, isSentNow: true, maxPending: 10 };
    const { operationId } = valueOf(await this.writer.write('queueCoupon', command));
    const answer = { operationId, outcome: lost, caller: null, policy: this.policy };
    valueOf(await this.writer.write('recordCouponResponse', answer));
    this.pass(minute);
    const head = this.store.operations.head('spring', 'coupon');
    if (head === null) throw new Error('nothing was queued');
    return head.id;
  }

  #upstream(): Upstream {
    const none = (): never => {
      throw new Error('nobody asks for this');
    };
    return {
      verify: none,
      change: none,
      createCoupon: none,
      redeem: none,
      voidRedemption: none,
      getCoupon: async () => notApplied('missing', 'HTTP 404'),
      listCoupons: (page) => this.lists.answer(page, () => this.#list()),
    };
  }

  #list(): Promise<Outcome<CouponPage>> {
    const { promise, resolve } = Promise.withResolvers<Outcome<CouponPage>>();
    this.listings.push(async (coupons, ageMs = 0) => {
      const confirmedAt = this.now - ageMs;
      const value = { coupons, unreadable: this.unreadable };
      resolve({ outcome: 'applied', value, confirmedAt, isCached: ageMs > 0 });
      await this.time.settle();
    });
    return promise;
  }
}

describe('a coupon that a person says was created', () => {
  it.each([
    ['a confirmed coupon is removed if the list lacks it', 0, [], 0],
    ['a confirmed coupon stays if a cached list lacks it', minute, [], 1],
    [
      'a confirmed coupon stays if a listed coupon cannot be parsed, which may be this one',
      0,
      [{ id: 7, code: 'Spring' }],
      1,
    ],
  ])('%s', async (_, ageMs, unreadable, left) => {
    await using office = new Office();
    const coupons = await office.open();
    const operationId = await office.lose();
    valueOf(await office.writer.write('decideOperation', { operationId, decision: 'confirm' }));
    office.unreadable = unreadable.map((each) => ({ ...each, fault: 'its terms' }));
    void coupons.list(forEver);
    await office.time.settle();
    await office.listings[0]?.([], ageMs);
    expect(office.store.mirror.count({})).toBe(left);
  });
});

describe('a creation whose response was lost', () => {
  it('a creation is not reconciled by a listing that began before the end of its reconcile delay', async () => {
    await using office = new Office();
    const coupons = await office.open();
    void coupons.list(forEver);
    await office.time.settle();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    // The first listing was made before the creation arrived.
    await office.listings[0]?.([]);
    expect(office.stateOf(id)).toBe('uncertain');
    await office.listings[1]?.([{ ...terms, id: 7 }]);
    expect(office.stateOf(id)).toBe('delivered');
    expect(office.listings.length).toBe(2);
  });

  it('a creation stays uncertain if the upstream shows the same coupons at each offset, which is detected at once', async () => {
    await using office = new Office();
    office.lists.byPage = true;
    const coupons = await office.open();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    const firstPage = Array.from({ length: 100 }, (_, index) => ({ ...terms, code: `C${index}`, id: index }));
    for (const answer of [0, 1]) await office.listings[answer]?.(firstPage);
    expect(office.listings).toHaveLength(2);
    expect(office.stateOf(id)).toBe('uncertain');
    expect(office.operation(id).lastError).toContain('the same coupons at every offset');
    expect(mirroredSince(office.store)).toBeNull();
  });

  it('a creation shares a listing with another creation that waits for the list', async () => {
    await using office = new Office();
    const coupons = await office.open();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    void coupons.list(forEver);
    await office.time.settle();
    expect(office.listings.length).toBe(1);
    await office.listings[0]?.([{ ...terms, id: 7 }]);
    expect(office.stateOf(id)).toBe('delivered');
  });

  it('a creation is found next to a coupon whose code differs only in case', async () => {
    await using office = new Office();
    const coupons = await office.open();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    const theirs: Coupon = { ...terms, id: 6, code: 'SPRING', notes: 'theirs' };
    await office.listings[0]?.([theirs, { ...terms, id: 7 }]);
    expect(office.stateOf(id)).toBe('delivered');
  });

  it('a creation is reconciled by a listing that the full disk cannot store', async () => {
    await using office = new Office();
    const coupons = await office.open();
    const id = await office.lose();
    const hasNoRoom = new Set<string>(['mirrorCoupons']);
    const write = office.writer.write.bind(office.writer);
    vi.spyOn(office.writer, 'write').mockImplementation((name, ...rest) =>
      hasNoRoom.has(name)
        ? Promise.reject(new StorageError('full', new Error('no room')))
        : write(name, ...rest),
    );
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    await office.listings[0]?.([{ ...terms, id: 7 }]);
    expect(office.stateOf(id)).toBe('delivered');
  });

  it('a creation is not reconciled by a cached listing, which callers see with its age', async () => {
    await using office = new Office();
    const coupons = await office.open();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    await office.listings[0]?.([{ ...terms, id: 7 }], minute);
    expect(office.stateOf(id)).toBe('uncertain');
    expect(office.store.operations.head('spring', 'coupon')?.nextAt).toBeGreaterThan(office.monotonic);
    expect(mirroredSince(office.store)).toBe(office.now - minute);
    expect(office.store.mirror.get(7)?.confirmedAt).toBe(office.now - minute);
  });

  it('a creation is found even if another coupon leaves the list between two pages', async () => {
    await using office = new Office();
    office.lists.byPage = true;
    const coupons = await office.open();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    const others = Array.from({ length: 100 }, (_, index) => ({
      ...terms,
      code: `C${index}`,
      id: index + 1,
    }));
    const ours = { ...terms, id: 101 };
    await office.listings[0]?.(others);
    // A coupon of the first page was deleted, so the next coupon moved to the page that was already read.
    await office.listings[1]?.([]);
    await office.listings[2]?.([...others.slice(1), ours]);
    await office.listings[3]?.([]);
    expect(office.stateOf(id)).toBe('delivered');
  });
});

it('coupons that the upstream has deleted are removed at the next list, whichever page of the mirror has them', async () => {
  await using office = new Office();
  const coupons = await office.open();
  const all = Array.from({ length: 101 }, (_, index) => ({ ...terms, code: `C${index}`, id: index + 1 }));
  void coupons.list(forEver);
  await office.time.settle();
  await office.listings.at(-1)?.(all);
  expect(office.store.mirror.count({})).toBe(101);
  void coupons.list(forEver);
  await office.time.settle();
  await office.listings.at(-1)?.(all.slice(50, 100));
  expect(office.store.mirror.count({})).toBe(50);
});

describe('a coupon that cannot be parsed', () => {
  const odd: UnreadableCoupon = { id: 6, code: 'ODD', fault: 'amount_off: …' };

  it('a coupon that cannot be parsed is left out of the mirror and logged once by its id', async () => {
    await using office = new Office();
    office.unreadable = [odd];
    const coupons = await office.open();
    for (const turn of [0, 1, 2]) {
      const listed = coupons.list(forEver);
      await office.time.settle();
      await office.listings[turn]?.([{ ...terms, id: 7 }]);
      expect(await listed).toMatchObject({ found: 'known' });
    }
    expect(office.store.mirror.list({ limit: 10, offset: 0 }).map(({ coupon }) => coupon.id)).toEqual([7]);
    expect(office.warnings).toEqual([{ coupon: 6, error: 'amount_off: …' }]);
  });

  it('a coupon that cannot be parsed any more stays as last read, because the list still contains it', async () => {
    await using office = new Office();
    const coupons = await office.open();
    for (const listed of [[{ ...terms, id: 6 }], []]) {
      void coupons.list(forEver);
      await office.time.settle();
      await office.listings.at(-1)?.(listed);
      office.unreadable = [odd];
    }
    expect(office.store.mirror.get(6)?.coupon.code).toBe('Spring');
  });

  it.each([
    ['its code', { ...odd, code: 'SPRING' }],
    ['no code that can be read', { ...odd, code: null }],
  ])(
    'a coupon that cannot be parsed and has %s may be the uncertain coupon, which is not sent again',
    async (_, unreadable) => {
      await using office = new Office();
      office.unreadable = [unreadable];
      const coupons = await office.open();
      const id = await office.lose();
      void coupons.reconcile(office.operation(id));
      await office.time.settle();
      await office.listings[0]?.([{ ...terms, id: 7, code: 'OTHER' }]);
      expect(office.stateOf(id)).toBe('uncertain');
      const why = `cannot be read, and may be this one: ${odd.fault}`;
      expect(office.operation(id).lastError).toContain(why);
    },
  );

  it('a coupon that cannot be parsed and has another code does not prevent sending again', async () => {
    await using office = new Office();
    office.unreadable = [odd];
    const coupons = await office.open();
    const id = await office.lose();
    void coupons.reconcile(office.operation(id));
    await office.time.settle();
    await office.listings[0]?.([]);
    expect(office.stateOf(id)).toBe('pending');
  });

  it('a coupon that cannot be parsed counts for the length of its page, so that the next page is read', async () => {
    await using office = new Office();
    office.lists.byPage = true;
    office.unreadable = [odd];
    const coupons = await office.open();
    void coupons.list(forEver);
    await office.time.settle();
    const others = Array.from({ length: 99 }, (__, index) => ({
      ...terms,
      code: `C${index}`,
      id: index + 10,
    }));
    await office.listings[0]?.(others);
    expect(office.listings).toHaveLength(2);
  });
});
