import { describe, expect, it, vi } from 'vitest';
import type { Coupon, CouponFilter } from '../../src/domain/checkout/coupon.ts';
import type { Page } from '../../src/domain/page.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { agentCouponService } from '../../src/service/agent/coupon.ts';
import type { CouponService } from '../../src/service/services.ts';
import { StorageError, type CouponPage, type Idempotency } from '../../src/service/ports.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ArrivedCoupon,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';
import { day, lost, minute, no, refusalOf, second, valueOf } from '../support/harness/service-harness.ts';
import { silent } from '../support/silent-log.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const terms = buildTerms({ code: 'Spring' });
const account = 'default';
const page = { limit: 10, offset: 0 };

function couponService(harness: ManualHarness, { isConfigured = true } = {}): CouponService {
  const { store: reader, writer, clock, sync, freshness, maxPending } = harness;
  return agentCouponService({
    reader,
    lists: reader,
    writer,
    clock,
    log: silent,
    fetcher: sync.coupons,
    isConfigured: () => isConfigured,
    deliveries: sync.delivery,
    settings: () => ({ freshness, maxPending, refreshMs: 0, unknownMs: 0, timeoutMs: 10_000 }),
  });
}

it('an agent does not create a coupon whose code has invisible or typographic characters', async () => {
  await using harness = await createManualHarness();
  for (const code of ['SAVE–20', 'SAVE-20\u200b', 'ＳＡＶＥ-20']) {
    const refused = couponService(harness).create(account, { ...terms, code }, asked, never);
    expect(await refused).toMatchObject({
      problem: { code: 'parameters_invalid', errors: [{ parameter: 'code', code: 'malformed' }] },
    });
  }
  expect(harness.arrivedCoupons).toEqual([]);
});

const asked = { actor: null, requestId: null, idempotency: null };

function create(harness: ManualHarness, idempotency: Idempotency | null = null) {
  return couponService(harness).create(account, terms, { ...asked, idempotency }, never);
}

function coupons(count: number, from = 1): Coupon[] {
  return Array.from({ length: count }, (_, index) => ({
    ...terms,
    id: from + index,
    code: `C${from + index}`,
  }));
}

function pageOf(listed: readonly Coupon[]): CouponPage {
  return { coupons: listed, unreadable: [] };
}

function said<Value>(harness: ManualHarness, value: Value): Outcome<Value> {
  return { outcome: 'applied', value, confirmedAt: harness.now, isCached: false };
}

/** The one request about coupons that is waiting upstream. */
async function arrived<Kind extends ArrivedCoupon['kind']>(
  harness: ManualHarness,
  kind: Kind,
): Promise<Extract<ArrivedCoupon, { kind: Kind }>> {
  await harness.time.settle();
  const [first, ...others] = harness.arrivedCoupons.splice(0);
  if (first?.kind !== kind || others.length > 0) throw new Error(`no ${kind} has arrived alone`);
  return first as Extract<ArrivedCoupon, { kind: Kind }>;
}

/** Mirrors these coupons by a list of a single page. */
async function mirror(harness: ManualHarness, listed: Coupon[]): Promise<void> {
  const answer = couponService(harness).list(account, page, never);
  await (await arrived(harness, 'list')).answer(said(harness, pageOf(listed)));
  await answer;
}

function run(harness: ManualHarness): void {
  harness.sync.delivery.run(harness.ending.signal).catch(() => undefined);
}

describe('creating a coupon on an agent', () => {
  it('a created coupon is the coupon of the upstream once the upstream has accepted it', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const request = await arrived(harness, 'create');
    expect(request.code).toBe('Spring');
    await request.answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await answer)).toMatchObject({
      coupon: { id: 7, code: 'Spring' },
      provenance: { freshness: 'fresh', pending: 0, cache: 'miss', ageMs: 0 },
    });
    expect(valueOf(await couponService(harness).get(account, 7, never)).coupon.id).toBe(7);
  });

  it('a coupon that is created while the upstream is down is provisional, and is sent when the upstream is back', async () => {
    await using harness = await createManualHarness();
    run(harness);
    harness.sync.limiter.pause();
    const { coupon, provenance } = valueOf(await create(harness));
    expect(coupon.id).toBeLessThan(0);
    expect(provenance).toEqual({
      freshness: 'provisional',
      confirmedAt: null,
      graceUntil: null,
      pending: 1,
      cache: 'miss',
      ageMs: 0,
    });
    harness.sync.limiter.resume();
    await (await arrived(harness, 'create')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await couponService(harness).get(account, coupon.id, never)).coupon.id).toBe(7);
  });

  it.each([lost, no('unreachable')])(
    'a created coupon is provisional if its outcome is unknown: $outcome',
    async (outcome) => {
      await using harness = await createManualHarness();
      const answer = create(harness);
      await (await arrived(harness, 'create')).answer(outcome);
      expect(valueOf(await answer).provenance).toMatchObject({ freshness: 'provisional', pending: 1 });
    },
  );

  it('a coupon is refused if the upstream has shown its code and cannot be asked', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, [{ ...terms, id: 7 }]);
    const once = { credential: 'account:default', key: 'once', fingerprint: 'f' };
    const answer = create(harness, once);
    await (await arrived(harness, 'create')).answer(no('unreachable'));
    expect(refusalOf(await answer)).toBe('coupon_code_taken');
    expect(valueOf(await couponService(harness).list(account, page, never)).coupons).toEqual([
      { ...terms, id: 7 },
    ]);
    expect(harness.store.operations.tail('spring', 'coupon')).toBeNull();
    expect(harness.store.idempotency.get(once.credential, once.key)).toBeNull();
  });

  it('a refused coupon has the error message of the upstream', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const refusal = { status: 429, detail: 'HTTP 429: not so fast', message: 'not so fast' };
    await (await arrived(harness, 'create')).answer({ ...no('throttled', 1500), ...refusal });
    expect(await answer).toMatchObject({
      problem: { code: 'upstream_refused', detail: 'not so fast', status: 429, retryAfterS: 2 },
    });
  });

  it('a refused coupon has only the status if the upstream sends no message', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer({ ...no('refused'), status: 422, detail: 'HTTP 422' });
    expect(await answer).toMatchObject({ problem: { code: 'upstream_refused', detail: 'HTTP 422' } });
  });

  it('a coupon is not refused as the fault of the caller if the upstream rejects our API key, and the key is not tried again', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer({ ...no('unauthorized'), status: 401 });
    expect(refusalOf(await answer)).toBe('upstream_unreachable');
    const again = couponService(harness).create(account, { ...terms, code: 'Other' }, asked, never);
    expect(refusalOf(await again)).toBe('upstream_unreachable');
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('a coupon whose code already waits for the upstream is refused without using a turn', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, rate: 0.5 };
    await harness.writer.write('queueCoupon', { terms, isSentNow: false, maxPending: 10 });
    await harness.passes(minute);
    expect(refusalOf(await create(harness))).toBe('coupon_code_taken');
    void couponService(harness).get(account, 9, never);
    expect((await arrived(harness, 'get')).id).toBe(9);
  });

  it('a coupon whose response was lost is looked for until a list can be read, and is sent again if the list lacks it', async () => {
    await using harness = await createManualHarness();
    run(harness);
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer(lost);
    await answer;
    await harness.passes(minute);
    await (await arrived(harness, 'list')).answer(no('throttled'));
    expect(harness.arrivedCoupons).toEqual([]);
    await harness.passes(second);
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect((await arrived(harness, 'create')).code).toBe('Spring');
  });

  it('a coupon is reported as created if the upstream has created it but the store fails to record that', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const request = await arrived(harness, 'create');
    harness.fault = new StorageError('failed', null);
    await request.answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await answer).coupon.id).toBe(7);
  });

  it('a coupon is reported as accepted if the store cannot be read before the coupon is sent', async () => {
    await using harness = await createManualHarness();
    vi.spyOn(harness.sync.coupons, 'create').mockRejectedValueOnce(new StorageError('failed', null));
    expect(valueOf(await create(harness)).provenance).toMatchObject({ pending: 1 });
  });

  it('a coupon response of the upstream is kept until the full disk has room', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const request = await arrived(harness, 'create');
    harness.fault = new StorageError('full', null);
    await request.answer(said(harness, { ...terms, id: 7 }));
    harness.fault = null;
    await harness.passes(second);
    expect(valueOf(await answer).coupon.id).toBe(7);
    expect(harness.store.mirror.get(7)?.coupon.code).toBe('Spring');
  });

  it('a warning is logged if the upstream refuses a coupon that waited', async () => {
    await using harness = await createManualHarness();
    await harness.writer.write('queueCoupon', { terms, isSentNow: false, maxPending: 10 });
    run(harness);
    await (await arrived(harness, 'create')).answer(no('refused'));
    expect(harness.warnings).toEqual(['a coupon creation was not delivered']);
  });

  it('no warning is logged if the caller gets the refusal of a coupon', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer(no('refused'));
    expect(await answer).toMatchObject({ ok: false, problem: { code: 'upstream_refused' } });
    expect(harness.warnings).toEqual([]);
  });

  it('a coupon is created once per idempotency key, whatever happened to the first request', async () => {
    await using harness = await createManualHarness();
    const once = { credential: 'c', key: 'k', fingerprint: 'f' };
    const first = create(harness, once);
    await (await arrived(harness, 'create')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await create(harness, once)).coupon).toEqual(valueOf(await first).coupon);
    expect(harness.arrivedCoupons).toEqual([]);
  });
});

describe('the list of coupons on an agent', () => {
  it('an agent reads the list of coupons once, and then answers from the mirror', async () => {
    await using harness = await createManualHarness();
    const list = couponService(harness).list(account, page, never);
    const confirmedAt = harness.now;
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect(valueOf(await list)).toMatchObject({
      total: 2,
      provenance: { cache: 'miss', freshness: 'fresh' },
    });
    await harness.passes(day);
    const again = valueOf(await couponService(harness).list(account, { limit: 1, offset: 1 }, never));
    expect(again.coupons.map(({ id }) => id)).toEqual([2]);
    expect(again.provenance).toEqual({
      freshness: 'fresh',
      confirmedAt,
      graceUntil: confirmedAt + 14 * day,
      pending: 0,
      cache: 'hit',
      ageMs: day,
    });
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('an agent answers a stale list of coupons at once, and reads the list in the background', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, coupons(1));
    await harness.passes(day + 1);
    const { provenance } = valueOf(await couponService(harness).list(account, page, never));
    expect(provenance).toMatchObject({ freshness: 'stale', cache: 'hit' });
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect(valueOf(await couponService(harness).list(account, page, never)).total).toBe(2);
  });

  it('an agent reads the list past its grace first, and answers with the old list if the upstream does not answer', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, coupons(1));
    await harness.passes(14 * day + 1);
    const away = couponService(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(no('unreachable'));
    expect(valueOf(await away)).toMatchObject({
      total: 1,
      provenance: { freshness: 'expired', cache: 'hit' },
    });
    const one = couponService(harness).get(account, 1, never);
    await (await arrived(harness, 'get')).answer(no('unreachable'));
    expect(valueOf(await one).provenance).toMatchObject({ freshness: 'expired', cache: 'hit' });
    const back = couponService(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect(valueOf(await back)).toMatchObject({
      total: 2,
      provenance: { freshness: 'fresh', cache: 'miss' },
    });
  });

  it('the list of coupons is refused if it was never read and the upstream cannot be reached', async () => {
    await using harness = await createManualHarness();
    const list = couponService(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(no('unreachable'));
    expect(await list).toMatchObject({
      problem: {
        code: 'upstream_unreachable',
        detail: "The upstream's coupons were never read: no: unreachable",
      },
    });
  });

  it('the list of coupons is not requested with a rejected API key, and uses no turn', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, rate: 0.5 };
    harness.sync.limiter.observe({ ...no('unauthorized'), status: 401 }, { owner: null, subject: 'coupons' });
    for (let time = 0; time < 3; time += 1) {
      const list = couponService(harness).list(account, page, never);
      expect(refusalOf(await list)).toBe('upstream_unreachable');
    }
    expect(harness.arrivedCoupons).toEqual([]);
    void harness.sync.fetcher.fetch(productKey, key, 'caller');
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('a caller who has left does not wait for the list of coupons', async () => {
    await using harness = await createManualHarness();
    const left = AbortSignal.abort(new Error('left'));
    await expect(couponService(harness).list(account, page, left)).rejects.toThrow('left');
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('a lost response to the list of coupons shows that the upstream is down', async () => {
    await using harness = await createManualHarness();
    const list = couponService(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(lost);
    expect(refusalOf(await list)).toBe('upstream_unreachable');
    expect(harness.sync.limiter.status().state).toBe('down');
  });

  it('the list of coupons is refused with a clear reason if the upstream has no such list', async () => {
    await using harness = await createManualHarness();
    const list = couponService(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(no('missing'));
    expect(await list).toMatchObject({
      problem: {
        detail: "The upstream's coupons were never read: the upstream has no such list",
      },
    });
  });

  it('the list of coupons is answered from the upstream’s response if the full disk cannot store it', async () => {
    await using harness = await createManualHarness();
    await harness.writer.write('queueCoupon', { terms, isSentNow: false, maxPending: 10 });
    const list = (query: Page & CouponFilter) => couponService(harness).list(account, query, never);
    const listed = async (query: Page & CouponFilter): Promise<[number, string[]]> => {
      const listing = list(query);
      harness.fault = new StorageError('full', null);
      await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(3))));
      const { coupons: given, total } = valueOf(await listing);
      return [total, given.map(({ code }) => code)];
    };
    expect(await listed(page)).toEqual([4, ['Spring', 'C1', 'C2', 'C3']]);
    expect(await listed({ limit: 1, offset: 2 })).toEqual([4, ['C2']]);
    expect(await listed({ ...page, code: 'c3' })).toEqual([1, ['C3']]);
    expect(await listed({ ...page, productKey: 'none' })).toEqual([0, []]);
    expect(await listed({ ...page, state: { is: 'ended', at: harness.now } })).toEqual([0, []]);
    expect(await listed({ ...page, state: { is: 'active', at: harness.now } })).toMatchObject([4, {}]);
  });

  it('a coupon is answered from the upstream’s response if the full disk cannot store it', async () => {
    await using harness = await createManualHarness();
    const got = couponService(harness).get(account, 7, never);
    harness.fault = new StorageError('full', null);
    await (await arrived(harness, 'get')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await got)).toMatchObject({
      coupon: { id: 7, code: 'Spring' },
      provenance: { freshness: 'fresh', cache: 'miss', pending: 0 },
    });
    expect(harness.store.mirror.get(7)).toBeNull();
  });

  it('the list of coupons is read to its end, and twice if it has several pages', async () => {
    await using harness = await createManualHarness();
    harness.lists.byPage = true;
    const list = couponService(harness).list(account, page, never);
    const all = coupons(150);
    // A coupon was deleted between the two pages, so another coupon moved up and was on neither page.
    const first = [all.slice(0, 100), all.slice(101), []];
    const second_ = [all.slice(0, 100), all.slice(100), []];
    const offsets: number[] = [];
    for (const reading of [...first, ...second_]) {
      const request = await arrived(harness, 'list');
      offsets.push(request.offset);
      await request.answer(said(harness, pageOf(reading)));
    }
    expect(offsets).toEqual([0, 100, 149, 0, 100, 150]);
    expect(valueOf(await list).total).toBe(150);
  });

  it('a coupon leaves the mirror if the upstream answers 404 for it, not if a list lacks it', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, coupons(3));
    await harness.passes(day + 1);
    await couponService(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(1))));
    const absent = await arrived(harness, 'get');
    await absent.answer(no('missing'));
    const third = await arrived(harness, 'get');
    await third.answer(no('unreachable'));
    expect([absent.id, third.id]).toEqual([2, 3]);
    const left = valueOf(await couponService(harness).list(account, page, never));
    expect(left.coupons.map(({ id }) => id)).toEqual([1, 3]);
  });
});

describe('one coupon on an agent', () => {
  it('an unknown coupon is read from the upstream and stored', async () => {
    await using harness = await createManualHarness();
    const answer = couponService(harness).get(account, 7, never);
    await (await arrived(harness, 'get')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await answer)).toMatchObject({ coupon: { id: 7 }, provenance: { cache: 'miss' } });
    expect(valueOf(await couponService(harness).get(account, 7, never)).provenance).toMatchObject({
      cache: 'hit',
    });
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('an unknown coupon is 404 if the upstream has no such coupon, and 503 if the upstream cannot be reached', async () => {
    await using harness = await createManualHarness();
    for (const [outcome, code, detail] of [
      [no('missing'), 'coupon_not_found', 'There is no coupon with this id.'],
      [
        no('unreachable'),
        'upstream_unreachable',
        'This coupon was never seen here, and the upstream is unreachable: no: unreachable',
      ],
    ] as const) {
      const answer = couponService(harness).get(account, 7, never);
      await (await arrived(harness, 'get')).answer(outcome);
      expect(await answer).toMatchObject({ problem: { code, detail } });
    }
  });

  it('an unknown provisional id is 404 without a request to the upstream', async () => {
    await using harness = await createManualHarness();
    expect(refusalOf(await couponService(harness).get(account, -1, never))).toBe('coupon_not_found');
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('a stale coupon is answered at once, and the list is read in the background', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, [{ ...terms, id: 7 }]);
    await harness.passes(day);
    await couponService(harness).get(account, 7, never);
    expect(harness.arrivedCoupons).toEqual([]);
    await harness.passes(1);
    await couponService(harness).get(account, 7, never);
    await arrived(harness, 'list');
  });
});

describe('an agent without an API key', () => {
  it('an agent without an API key of its upstream refuses coupons', async () => {
    await using harness = await createManualHarness();
    const none = couponService(harness, { isConfigured: false });
    const answers = [
      await none.create(account, terms, asked, never),
      await none.list(account, page, never),
      await none.get(account, 7, never),
    ];
    expect(answers.map(refusalOf)).toEqual(answers.map(() => 'coupons_not_configured'));
    expect(harness.arrivedCoupons).toEqual([]);
  });
});
