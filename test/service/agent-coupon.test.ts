import { describe, expect, it, vi } from 'vitest';
import type { Coupon, CouponFilter } from '../../src/domain/checkout/coupon.ts';
import type { Page } from '../../src/domain/page.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { agentCouponing } from '../../src/service/agent/coupon.ts';
import type { Couponing } from '../../src/service/answers.ts';
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

function couponing(harness: ManualHarness, { isConfigured = true } = {}): Couponing {
  const { store: reader, writer, clock, sync, freshness, maxPending } = harness;
  return agentCouponing({
    reader,
    lists: reader,
    writer,
    clock,
    log: silent,
    fetcher: sync.coupons,
    isConfigured: () => isConfigured,
    wake: () => sync.push.wake(),
    settings: () => ({ freshness, maxPending }),
  });
}

it('a coupon whose code has invisible or typographic characters is not created on an agent', async () => {
  await using harness = await createManualHarness();
  for (const code of ['SAVE–20', 'SAVE-20\u200b', 'ＳＡＶＥ-20']) {
    const refused = couponing(harness).create(account, { ...terms, code }, asked, never);
    expect(await refused).toMatchObject({
      problem: { code: 'parameters_invalid', errors: [{ parameter: 'code', code: 'malformed' }] },
    });
  }
  expect(harness.arrivedCoupons).toEqual([]);
});

const asked = { actor: null, requestId: null, idempotency: null };

function create(harness: ManualHarness, idempotency: Idempotency | null = null) {
  return couponing(harness).create(account, terms, { ...asked, idempotency }, never);
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
  const answer = couponing(harness).list(account, page, never);
  await (await arrived(harness, 'list')).answer(said(harness, pageOf(listed)));
  await answer;
}

function run(harness: ManualHarness): void {
  harness.sync.push.run(harness.ending.signal).catch(() => undefined);
}

describe('a coupon that is created on an agent', () => {
  it('is the upstream’s, once that has taken it', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const request = await arrived(harness, 'create');
    expect(request.code).toBe('Spring');
    await request.answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await answer)).toMatchObject({
      coupon: { id: 7, code: 'Spring' },
      provenance: { freshness: 'fresh', pending: 0, cache: 'miss', ageMs: 0 },
    });
    expect(valueOf(await couponing(harness).get(account, 7, never)).coupon.id).toBe(7);
  });

  it('is provisional while the upstream is away, and goes up when it is back', async () => {
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
    expect(valueOf(await couponing(harness).get(account, coupon.id, never)).coupon.id).toBe(7);
  });

  it.each([lost, no('unreachable')])(
    'is provisional when nothing is known of its answer: $outcome',
    async (outcome) => {
      await using harness = await createManualHarness();
      const answer = create(harness);
      await (await arrived(harness, 'create')).answer(outcome);
      expect(valueOf(await answer).provenance).toMatchObject({ freshness: 'provisional', pending: 1 });
    },
  );

  it('is refused for a code that the upstream has shown, where that cannot be asked after all', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, [{ ...terms, id: 7 }]);
    const once = { credential: 'account:default', key: 'once', fingerprint: 'f' };
    const answer = create(harness, once);
    await (await arrived(harness, 'create')).answer(no('unreachable'));
    expect(refusalOf(await answer)).toBe('coupon_code_taken');
    expect(valueOf(await couponing(harness).list(account, page, never)).coupons).toEqual([
      { ...terms, id: 7 },
    ]);
    expect(harness.store.operations.tail('spring', 'coupon')).toBeNull();
    expect(harness.store.idempotency.get(once.credential, once.key)).toBeNull();
  });

  it('is refused in the words of the upstream', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const refusal = { status: 429, detail: 'HTTP 429: not so fast', message: 'not so fast' };
    await (await arrived(harness, 'create')).answer({ ...no('throttled', 1500), ...refusal });
    expect(await answer).toMatchObject({
      problem: { code: 'upstream_refused', detail: 'not so fast', status: 429, retryAfterS: 2 },
    });
  });

  it('is refused with the status where the upstream says nothing else', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer({ ...no('refused'), status: 422, detail: 'HTTP 422' });
    expect(await answer).toMatchObject({ problem: { code: 'upstream_refused', detail: 'HTTP 422' } });
  });

  it('is no fault of the caller when the upstream does not accept our API key, which is not tried again', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer({ ...no('unauthorized'), status: 401 });
    expect(refusalOf(await answer)).toBe('upstream_unreachable');
    const again = couponing(harness).create(account, { ...terms, code: 'Other' }, asked, never);
    expect(refusalOf(await again)).toBe('upstream_unreachable');
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('is refused for a code that waits for the upstream already, which costs nobody a turn', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, rate: 0.5 };
    await harness.writer.write('queueCoupon', { terms, isSentNow: false, maxPending: 10 });
    await harness.passes(minute);
    expect(refusalOf(await create(harness))).toBe('coupon_code_taken');
    void couponing(harness).get(account, 9, never);
    expect((await arrived(harness, 'get')).id).toBe(9);
  });

  it('whose answer was lost is looked for until a list can be had, and sent again when it is not there', async () => {
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

  it('is answered as created once the upstream has created it, although the store fails to record that', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    const request = await arrived(harness, 'create');
    harness.fault = new StorageError('failed', null);
    await request.answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await answer).coupon.id).toBe(7);
  });

  it('is answered as accepted where the store cannot be read before it is sent', async () => {
    await using harness = await createManualHarness();
    vi.spyOn(harness.sync.coupons, 'create').mockRejectedValueOnce(new StorageError('failed', null));
    expect(valueOf(await create(harness)).provenance).toMatchObject({ pending: 1 });
  });

  it('is kept until the full disk has room for what the upstream answered', async () => {
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

  it('is warned of in the log when it waited, and the upstream will not have it', async () => {
    await using harness = await createManualHarness();
    await harness.writer.write('queueCoupon', { terms, isSentNow: false, maxPending: 10 });
    run(harness);
    await (await arrived(harness, 'create')).answer(no('refused'));
    expect(harness.warnings).toEqual(['a coupon creation was not delivered']);
  });

  it('is not warned of where who asks for it is told that the upstream will not have it', async () => {
    await using harness = await createManualHarness();
    const answer = create(harness);
    await (await arrived(harness, 'create')).answer(no('refused'));
    expect(await answer).toMatchObject({ ok: false, problem: { code: 'upstream_refused' } });
    expect(harness.warnings).toEqual([]);
  });

  it('under an idempotency key is created once, whatever became of it', async () => {
    await using harness = await createManualHarness();
    const once = { credential: 'c', key: 'k', fingerprint: 'f' };
    const first = create(harness, once);
    await (await arrived(harness, 'create')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await create(harness, once)).coupon).toEqual(valueOf(await first).coupon);
    expect(harness.arrivedCoupons).toEqual([]);
  });
});

describe('the coupons of an agent', () => {
  it('are asked for once, and then answered from here', async () => {
    await using harness = await createManualHarness();
    const list = couponing(harness).list(account, page, never);
    const confirmedAt = harness.now;
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect(valueOf(await list)).toMatchObject({
      total: 2,
      provenance: { cache: 'miss', freshness: 'fresh' },
    });
    await harness.passes(day);
    const again = valueOf(await couponing(harness).list(account, { limit: 1, offset: 1 }, never));
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

  it('that are stale are answered at once, and listed again behind the answer', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, coupons(1));
    await harness.passes(day + 1);
    const { provenance } = valueOf(await couponing(harness).list(account, page, never));
    expect(provenance).toMatchObject({ freshness: 'stale', cache: 'hit' });
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect(valueOf(await couponing(harness).list(account, page, never)).total).toBe(2);
  });

  it('that are past their grace are asked for first, and told all the same without an answer', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, coupons(1));
    await harness.passes(14 * day + 1);
    const away = couponing(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(no('unreachable'));
    expect(valueOf(await away)).toMatchObject({
      total: 1,
      provenance: { freshness: 'expired', cache: 'hit' },
    });
    const one = couponing(harness).get(account, 1, never);
    await (await arrived(harness, 'get')).answer(no('unreachable'));
    expect(valueOf(await one).provenance).toMatchObject({ freshness: 'expired', cache: 'hit' });
    const back = couponing(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(2))));
    expect(valueOf(await back)).toMatchObject({
      total: 2,
      provenance: { freshness: 'fresh', cache: 'miss' },
    });
  });

  it('are not known while the upstream cannot be asked', async () => {
    await using harness = await createManualHarness();
    const list = couponing(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(no('unreachable'));
    expect(await list).toMatchObject({
      problem: {
        code: 'upstream_unreachable',
        detail: "The upstream's coupons were never read: no: unreachable",
      },
    });
  });

  it('are not asked for under an API key that was refused, which costs nobody a turn', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, rate: 0.5 };
    harness.sync.limiter.observe({ ...no('unauthorized'), status: 401 }, { owner: null, subject: 'coupons' });
    for (let time = 0; time < 3; time += 1) {
      const list = couponing(harness).list(account, page, never);
      expect(refusalOf(await list)).toBe('upstream_unreachable');
    }
    expect(harness.arrivedCoupons).toEqual([]);
    void harness.sync.fetcher.fetch(productKey, key, 'caller');
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('are not waited for by a caller who has left', async () => {
    await using harness = await createManualHarness();
    const left = AbortSignal.abort(new Error('left'));
    await expect(couponing(harness).list(account, page, left)).rejects.toThrow('left');
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('show an upstream that is away by a list that is lost', async () => {
    await using harness = await createManualHarness();
    const list = couponing(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(lost);
    expect(refusalOf(await list)).toBe('upstream_unreachable');
    expect(harness.sync.limiter.status().state).toBe('down');
  });

  it('are not known where the upstream has no list of them, and that is not called silence', async () => {
    await using harness = await createManualHarness();
    const list = couponing(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(no('missing'));
    expect(await list).toMatchObject({
      problem: {
        detail: "The upstream's coupons were never read: the upstream has no such list",
      },
    });
  });

  it('are listed as the upstream has just said, although the full disk has no room for them', async () => {
    await using harness = await createManualHarness();
    await harness.writer.write('queueCoupon', { terms, isSentNow: false, maxPending: 10 });
    const list = (query: Page & CouponFilter) => couponing(harness).list(account, query, never);
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

  it('each is told as the upstream has just said, although the full disk has no room for it', async () => {
    await using harness = await createManualHarness();
    const got = couponing(harness).get(account, 7, never);
    harness.fault = new StorageError('full', null);
    await (await arrived(harness, 'get')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await got)).toMatchObject({
      coupon: { id: 7, code: 'Spring' },
      provenance: { freshness: 'fresh', cache: 'miss', pending: 0 },
    });
    expect(harness.store.mirror.get(7)).toBeNull();
  });

  it('are read to the end of the list, twice where it has several pages', async () => {
    await using harness = await createManualHarness();
    harness.lists.byPage = true;
    const list = couponing(harness).list(account, page, never);
    const all = coupons(150);
    // Between the pages one was deleted, so that another moved up and was on neither page.
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

  it('leave the mirror when the upstream says that they are gone, not when a list lacks them', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, coupons(3));
    await harness.passes(day + 1);
    await couponing(harness).list(account, page, never);
    await (await arrived(harness, 'list')).answer(said(harness, pageOf(coupons(1))));
    const absent = await arrived(harness, 'get');
    await absent.answer(no('missing'));
    const third = await arrived(harness, 'get');
    await third.answer(no('unreachable'));
    expect([absent.id, third.id]).toEqual([2, 3]);
    const left = valueOf(await couponing(harness).list(account, page, never));
    expect(left.coupons.map(({ id }) => id)).toEqual([1, 3]);
  });
});

describe('one coupon of an agent', () => {
  it('that is not known is asked for, and kept', async () => {
    await using harness = await createManualHarness();
    const answer = couponing(harness).get(account, 7, never);
    await (await arrived(harness, 'get')).answer(said(harness, { ...terms, id: 7 }));
    expect(valueOf(await answer)).toMatchObject({ coupon: { id: 7 }, provenance: { cache: 'miss' } });
    expect(valueOf(await couponing(harness).get(account, 7, never)).provenance).toMatchObject({
      cache: 'hit',
    });
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('is 404 when the upstream has none, and 503 when it cannot be asked', async () => {
    await using harness = await createManualHarness();
    for (const [outcome, code, detail] of [
      [no('missing'), 'coupon_not_found', 'There is no coupon with this id.'],
      [
        no('unreachable'),
        'upstream_unreachable',
        'This coupon was never seen here, and the upstream is unreachable: no: unreachable',
      ],
    ] as const) {
      const answer = couponing(harness).get(account, 7, never);
      await (await arrived(harness, 'get')).answer(outcome);
      expect(await answer).toMatchObject({ problem: { code, detail } });
    }
  });

  it('under a provisional id that is not known is 404, and asks nobody', async () => {
    await using harness = await createManualHarness();
    expect(refusalOf(await couponing(harness).get(account, -1, never))).toBe('coupon_not_found');
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('that is stale is answered at once, and listed again behind the answer', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, [{ ...terms, id: 7 }]);
    await harness.passes(day);
    await couponing(harness).get(account, 7, never);
    expect(harness.arrivedCoupons).toEqual([]);
    await harness.passes(1);
    await couponing(harness).get(account, 7, never);
    await arrived(harness, 'list');
  });
});

describe('an agent without an API key of its upstream', () => {
  it('has no coupons', async () => {
    await using harness = await createManualHarness();
    const none = couponing(harness, { isConfigured: false });
    const answers = [
      await none.create(account, terms, asked, never),
      await none.list(account, page, never),
      await none.get(account, 7, never),
    ];
    expect(answers.map(refusalOf)).toEqual(answers.map(() => 'coupons_not_configured'));
    expect(harness.arrivedCoupons).toEqual([]);
  });
});
