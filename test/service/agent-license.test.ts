import { describe, expect, it } from 'vitest';
import { agentLicensing } from '../../src/service/agent/license.ts';
import type { LicenseResponse, LicenseChangeRequest, Licensing } from '../../src/service/answers.ts';
import type { Result } from '../../src/domain/problem/problem.ts';
import { StorageError } from '../../src/service/ports.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';
import { silent } from '../support/silent-log.ts';
import {
  day,
  hour,
  lost,
  minute,
  no,
  refusalOf,
  second,
  valueOf,
} from '../support/harness/service-harness.ts';

const anyProduct = { accountId: 'default', productKey: null };
const itsProduct = { accountId: 'default', productKey };
const another = { accountId: 'default', productKey: 'other' };

function licensing(harness: ManualHarness, productIds: readonly string[] = [productKey]): Licensing {
  const { store: reader, writer, clock, sync, freshness, maxPending } = harness;
  harness.options = { ...harness.options, productIds };
  return agentLicensing({
    reader,
    writer,
    clock,
    log: silent,
    fetcher: sync.fetcher,
    deliveries: sync.push,
    productIds: () => productIds,
    settings: () => ({ freshness, maxPending, refreshMs: 6 * hour, timeoutMs: 10 * second }),
  });
}

function verify(harness: ManualHarness, licenseKey = key): Promise<Result<LicenseResponse>> {
  return licensing(harness).verify(itsProduct, licenseKey, never);
}

const usage = {
  tenant: itsProduct,
  licenseKey: key,
  trigger: 'usage',
  actor: 'product:press',
  idempotency: null,
  waitMs: 0,
} as const;

function change(harness: ManualHarness, changes: Partial<LicenseChangeRequest> = {}) {
  return licensing(harness).change({ ...usage, ...changes }, never);
}

/** Whether a promise has reconciled by now. */
async function isOver(harness: ManualHarness, promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  void promise.finally(() => (over = true));
  await harness.time.settle();
  return over;
}

function run(harness: ManualHarness): void {
  harness.sync.push.run(harness.ending.signal).catch(() => undefined);
}

it('a use of a known key that was pasted is queued for that key, also while the upstream is away', async () => {
  for (const outcome of ['missing', 'unreachable'] as const) {
    await using harness = await createManualHarness({ uses: 5 });
    const used = change(harness, { licenseKey: `\u2066${key}` });
    await (await harness.request()).answer(no(outcome));
    expect(valueOf(await used)).toMatchObject({ license: { licenseKey: key, uses: 6 } });
    expect(harness.store.operations.openOf(key, null, { limit: 9, offset: 0 })).toHaveLength(1);
  }
});

describe('a verify on an agent', () => {
  it('of a fresh key is answered from what the upstream last said, and says how much that is worth', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const confirmedAt = harness.now;
    await harness.passes(day);
    const { license, provenance } = valueOf(await verify(harness));
    expect(license).toMatchObject({ licenseKey: key, uses: 5, enabled: true });
    expect(provenance).toEqual({
      freshness: 'fresh',
      confirmedAt,
      graceUntil: confirmedAt + 14 * day,
      pending: 0,
      cache: 'hit',
      ageMs: day,
    });
    expect(await harness.requested()).toEqual([]);
  });

  it.each([
    ['stale', day + 1],
    ['grace', 7 * day + 1],
  ] as const)('of a key in %s is answered at once, and read behind the answer', async (freshness, age) => {
    await using harness = await createManualHarness();
    await harness.passes(age);
    const { provenance } = valueOf(await verify(harness));
    expect(provenance).toMatchObject({ freshness, cache: 'hit' });
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('of a key past its grace waits for the upstream, and is 503 without it', async () => {
    await using harness = await createManualHarness();
    await harness.passes(14 * day + 1);
    const answer = verify(harness);
    await (await harness.request()).answer(lost);
    expect(refusalOf(await answer)).toBe('verdict_expired');
    const again = verify(harness);
    await (await harness.request()).answer(harness.says(8));
    expect(valueOf(await again)).toMatchObject({
      license: { uses: 8 },
      provenance: { freshness: 'fresh', cache: 'miss', ageMs: 0 },
    });
  });

  it.each([
    ['the upstream cannot be asked', () => no('unauthorized'), 'cannot be reached now: no: unauthorized'],
    [
      'the upstream says so in a sentence of its own',
      () => ({ ...no('unauthorized'), detail: 'HTTP 401: It is closed.' }),
      'cannot be reached now: HTTP 401: It is closed',
    ],
    ['it does not know the key any more', () => no('missing'), 'does not know it now'],
    [
      'what answers is as old',
      (harness: ManualHarness) => harness.cacheSays(5, 15 * day),
      'a cache or an agent answers for it with data that is as old',
    ],
  ])('of a key past its grace says why it is 503: %s', async (_, says, why) => {
    await using harness = await createManualHarness();
    await harness.passes(14 * day + 1);
    const answer = verify(harness);
    await (await harness.request()).answer(says(harness));
    expect(await answer).toMatchObject({
      problem: {
        code: 'verdict_expired',
        detail: `The upstream last confirmed this key too long ago, and ${why}.`,
      },
    });
  });

  it('of a disabled key is answered at any age', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.passes(20 * day);
    const { license, provenance } = valueOf(await verify(harness));
    expect([license.enabled, provenance.freshness]).toEqual([false, 'expired']);
  });

  it('of a known key that was pasted is answered as that key once the upstream has no key of the pasted form', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const pasted = `${key}\u200b`;
    const answer = verify(harness, pasted);
    const request = await harness.request();
    expect(request).toMatchObject({ licenseKey: pasted });
    await request.answer(no('missing'));
    expect(valueOf(await answer)).toMatchObject({ license: { licenseKey: key, uses: 5 } });
    expect(await harness.requested()).toEqual([]);
  });

  it('of a known key that was pasted is answered as that key while the upstream is away', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const answer = verify(harness, `${key}\u200b`);
    await (await harness.request()).answer(no('unreachable'));
    expect(valueOf(await answer)).toMatchObject({ license: { licenseKey: key, uses: 5 } });
  });

  it('of an unknown key that was pasted is 503, not 404, where the upstream spoke of one form only', async () => {
    await using harness = await createManualHarness();
    const answer = verify(harness, 'NE\u00adW');
    await (await harness.request()).answer(no('unreachable'));
    const later = await harness.request();
    expect(later).toMatchObject({ licenseKey: 'NEW' });
    await later.answer(no('missing'));
    expect(refusalOf(await answer)).toBe('upstream_unreachable');
  });

  it('of a key that the upstream has exactly in the pasted form is answered by that key', async () => {
    await using harness = await createManualHarness();
    const answer = verify(harness, 'OLD–1');
    await (await harness.request()).answer(harness.saysOf('OLD–1'));
    expect(valueOf(await answer)).toMatchObject({ license: { licenseKey: 'OLD–1' } });
    expect(valueOf(await verify(harness, 'OLD–1'))).toMatchObject({ license: { licenseKey: 'OLD–1' } });
    expect(await harness.requested()).toEqual([]);
  });

  it('of an unknown key asks the upstream under the products that the credential reaches', async () => {
    await using harness = await createManualHarness();
    const ask = (tenant: typeof anyProduct | typeof another) =>
      licensing(harness, ['first', productKey]).verify(tenant, 'NEW', never);
    const answer = ask(anyProduct);
    for (const product of ['first', productKey]) {
      const request = await harness.request();
      expect(request).toMatchObject({ productKey: product, licenseKey: 'NEW' });
      await request.answer(product === 'first' ? no('missing') : harness.saysOf('NEW'));
    }
    expect(valueOf(await answer)).toMatchObject({ provenance: { cache: 'miss' } });
    expect(refusalOf(await ask(another))).toBe('license_not_found');
    expect(await harness.requested()).toEqual([]);
  });

  it('of an unknown key is 404 when the upstream has none, and 503 with the reason when it cannot say', async () => {
    await using harness = await createManualHarness();
    const unreachable = verify(harness, 'NEW');
    await (await harness.request()).answer(no('unreachable'));
    expect(await unreachable).toMatchObject({
      problem: {
        code: 'upstream_unreachable',
        detail: 'This key was never seen here, and the upstream is unreachable: no: unreachable',
      },
    });
    const missing = verify(harness, 'NEW');
    await (await harness.request()).answer(no('missing'));
    expect(refusalOf(await missing)).toBe('license_not_found');
  });

  it('of a key whose product was taken out of the configuration is 404 for everybody, and asks nobody', async () => {
    await using harness = await createManualHarness();
    const without = licensing(harness, ['other']);
    for (const tenant of [anyProduct, itsProduct]) {
      expect(refusalOf(await without.verify(tenant, key, never))).toBe('license_not_found');
    }
    expect(await harness.requested()).toEqual([]);
    expect(valueOf(await licensing(harness).verify(anyProduct, key, never)).license.enabled).toBe(true);
  });

  it('of a key of another product is 404, and asks nobody', async () => {
    await using harness = await createManualHarness();
    expect(refusalOf(await licensing(harness).verify(another, key, never))).toBe('license_not_found');
    expect(await harness.requested()).toEqual([]);
  });

  it('of a key that was last asked for in the future, by a clock that was set right, notes when it was asked', async () => {
    await using harness = await createManualHarness();
    const ahead = harness.now + 60 * day;
    harness.store.snapshots.touch(key, ahead, harness.elapsed);
    valueOf(await verify(harness));
    await harness.time.settle();
    expect(harness.snapshot.askedAt).toBe(harness.now);
  });

  it('keeps a key among those that are refreshed, once in a while', async () => {
    await using harness = await createManualHarness();
    const asked = harness.snapshot.askedAt;
    await harness.passes(6 * hour);
    await verify(harness);
    await harness.time.settle();
    expect(harness.snapshot.askedAt).toBe(asked);
    await harness.passes(1);
    await verify(harness);
    await harness.time.settle();
    expect(harness.snapshot.askedAt).toBe(asked + 6 * hour + 1);
  });

  it('of an unknown key is refused where too many look-ups of its credential wait; of a known one never', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, lookups: { perSecond: 0.1, maxWaiting: 1 } };
    const ask = (licenseKey: string): Promise<Result<LicenseResponse>> =>
      licensing(harness).verify(itsProduct, licenseKey, never, 'till');
    void ask('FIRST');
    await (await harness.request()).answer({ ...no('missing'), status: 404 });
    const refused = ask('SECOND');
    void ask('THIRD');
    expect(await refused).toMatchObject({ problem: { code: 'rate_limited', retryAfterS: 10 } });
    await harness.passes(14 * day + 1);
    await (await harness.request()).answer({ ...no('missing'), status: 404 });
    void ask('FOURTH');
    await (await harness.request()).answer({ ...no('missing'), status: 404 });
    // The rate is used up.
    const answer = ask(key);
    await (await harness.request()).answer(harness.says(5));
    expect(valueOf(await answer).provenance.freshness).toBe('fresh');
  });
});

describe('a verify on an agent whose disk is full', () => {
  it('is answered as the upstream has just said of a key that is not known here', async () => {
    await using harness = await createManualHarness();
    const answer = verify(harness, 'OTHER');
    harness.fault = new StorageError('full', null);
    await (await harness.request()).answer(harness.saysOf('OTHER'));
    expect(valueOf(await answer)).toMatchObject({
      license: { licenseKey: 'OTHER', uses: 0, enabled: true },
      productKey,
      provenance: { freshness: 'fresh', cache: 'miss', pending: 0 },
    });
    expect(harness.store.snapshots.get('OTHER')).toBeNull();
  });

  it('is answered as the upstream has just said of a key that was confirmed too long ago', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.passes(30 * day);
    const answer = verify(harness);
    harness.fault = new StorageError('full', null);
    await (await harness.request()).answer(harness.says(7));
    expect(valueOf(await answer)).toMatchObject({ license: { uses: 7 }, provenance: { freshness: 'fresh' } });
  });

  it('is refused where the changes of this agent would be missing in what the upstream has said', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.record('usage');
    await harness.passes(30 * day);
    const answer = verify(harness);
    harness.fault = new StorageError('full', null);
    await (await harness.request()).answer(harness.says(7));
    expect(refusalOf(await answer)).toBe('verdict_expired');
  });
});

describe('a change on an agent', () => {
  it('is answered at once, and goes up behind the answer', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    run(harness);
    await harness.time.settle();
    expect(valueOf(await change(harness))).toMatchObject({
      license: { uses: 6 },
      provenance: { pending: 1, cache: 'hit' },
    });
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('is answered with what the upstream said, where the caller waits for that', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    run(harness);
    const answer = change(harness, { waitMs: minute });
    const request = await harness.request();
    expect(await isOver(harness, answer)).toBe(false);
    await request.answer(harness.says(6));
    expect(valueOf(await answer)).toMatchObject({ license: { uses: 6 }, provenance: { pending: 0 } });
  });

  it('of an unknown key asks for it first, and is refused when nobody can say what it is', async () => {
    await using harness = await createManualHarness();
    const refused = change(harness, { licenseKey: 'NEW' });
    await (await harness.request()).answer(no('unreachable'));
    expect(refusalOf(await refused)).toBe('upstream_unreachable');
    const taken = change(harness, { licenseKey: 'NEW' });
    await (await harness.request()).answer(harness.saysOf('NEW'));
    expect(valueOf(await taken)).toMatchObject({ license: { licenseKey: 'NEW', uses: 1 } });
  });

  it('of a disabled key past its grace asks for it first', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.passes(14 * day + 1);
    const answer = change(harness);
    await (await harness.request()).answer(harness.says(5));
    expect(valueOf(await answer)).toMatchObject({ license: { uses: 6, enabled: true } });
  });

  it('of a key whose product was taken out of the configuration is 404, and what waits for it goes on waiting', async () => {
    await using harness = await createManualHarness();
    await change(harness);
    const late = { ...usage, tenant: anyProduct };
    expect(refusalOf(await licensing(harness, ['other']).change(late, never))).toBe('license_not_found');
    expect(harness.local.pending).toBe(1);
  });

  it('that was answered before its product was taken out of the configuration is answered so again', async () => {
    await using harness = await createManualHarness();
    const idempotency = { credential: 'token:t', key: 'once', fingerprint: 'f' };
    const first = valueOf(await change(harness, { idempotency }));
    const again = await licensing(harness, []).change({ ...usage, idempotency }, never);
    expect(valueOf(again).license).toEqual(first.license);
  });

  it('of a key of another product is 404', async () => {
    await using harness = await createManualHarness();
    expect(refusalOf(await change(harness, { tenant: another }))).toBe('license_not_found');
    expect(harness.local.pending).toBe(0);
  });
});

it('an agent allows a cache to repeat the answer of a verify until it must note again that the key is in use', async () => {
  await using harness = await createManualHarness();
  const isCacheable = async (): Promise<boolean> => {
    const { cacheable } = valueOf(await verify(harness));
    return cacheable !== undefined && cacheable.since <= harness.now && harness.now <= cacheable.until;
  };
  await harness.passes(6 * hour);
  expect(await isCacheable()).toBe(true);
  await harness.passes(1);
  expect(await isCacheable()).toBe(false);
  // This verify notes that the key is in use, so that the key is refreshed.
  await harness.time.settle();
  expect(harness.snapshot.askedAt).toBe(harness.now);
  expect(await isCacheable()).toBe(true);
});

describe('an enable on an agent', () => {
  it('of a disabled key waits for the upstream, as long as it may take', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    run(harness);
    const answer = change(harness, { trigger: 'enable' });
    await (await harness.request()).answer(harness.says(5, { enabled: false }));
    const request = await harness.request();
    expect(request.kind).toBe('enable');
    expect(await isOver(harness, answer)).toBe(false);
    await request.answer(harness.says(5));
    expect(valueOf(await answer)).toMatchObject({ license: { enabled: true }, provenance: { pending: 0 } });
  });

  it('waits until its first failure at most, and does not show before it is delivered', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    run(harness);
    const answer = change(harness, { trigger: 'enable' });
    await (await harness.request()).answer(lost);
    expect(await isOver(harness, answer)).toBe(true);
    expect(valueOf(await answer)).toMatchObject({ license: { enabled: false }, provenance: { pending: 1 } });
  });

  it.each([
    ['as long as a request may take', false, 10 * second],
    ['half as long where an agent asks, which waits no longer itself', true, 5 * second],
  ])('waits %s, and no longer', async (_, isAgent, longest) => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    run(harness);
    const answer = change(harness, { trigger: 'enable', isAgent });
    await harness.passes(longest - 1);
    expect(await isOver(harness, answer)).toBe(false);
    await harness.passes(1);
    expect(await isOver(harness, answer)).toBe(true);
  });

  it('of a key that is disabled here is recorded without asking first, however old the snapshot is', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.passes(day + 1);
    void change(harness, { trigger: 'enable' });
    expect(await harness.requested()).toEqual([]);
    expect(harness.store.operations.head(key, 'state')?.kind).toBe('enable');
  });

  it('of a key of another product asks nobody', async () => {
    await using harness = await createManualHarness();
    await harness.passes(day + 1);
    const answer = change(harness, { trigger: 'enable', tenant: another });
    expect(await harness.requested()).toEqual([]);
    expect(refusalOf(await answer)).toBe('license_not_found');
  });

  it('of a key that was seen enabled asks first when that is not fresh', async () => {
    await using harness = await createManualHarness();
    expect(valueOf(await change(harness, { trigger: 'enable' }))).toMatchObject({
      provenance: { pending: 0 },
    });
    await harness.passes(day + 1);
    const answer = change(harness, { trigger: 'enable', waitMs: second });
    const request = await harness.request();
    expect(request.kind).toBe('verify');
    await request.answer(harness.says(5, { enabled: false }));
    await harness.passes(second);
    expect(valueOf(await answer)).toMatchObject({ license: { enabled: false }, provenance: { pending: 1 } });
  });

  it('no other change asks first', async () => {
    await using harness = await createManualHarness();
    await harness.passes(day + 1);
    expect(valueOf(await change(harness, { trigger: 'disable' })).license.enabled).toBe(false);
    expect(await harness.requested()).toEqual([]);
  });
});

describe('a change on an agent under an idempotency key', () => {
  const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };

  it('that is repeated is answered as it was, and neither asks nor waits again', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    run(harness);
    const first = change(harness, { idempotency, waitMs: minute });
    await (await harness.request()).answer(harness.says(6));
    const told = valueOf(await first);
    expect(told.provenance).toMatchObject({ pending: 0 });
    await change(harness);
    await (await harness.request()).answer(harness.says(7));
    const again = change(harness, { idempotency, waitMs: minute });
    expect(await isOver(harness, again)).toBe(true);
    expect(valueOf(await again)).toEqual(told);
    expect(harness.local.uses).toBe(7);
  });

  it('that is repeated before it was delivered does not wait for that', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const first = valueOf(await change(harness, { idempotency }));
    const again = change(harness, { idempotency, waitMs: minute });
    expect(await isOver(harness, again)).toBe(true);
    expect(valueOf(await again)).toEqual(first);
  });

  it('an enable of a key that is no longer fresh is not asked for again', async () => {
    await using harness = await createManualHarness();
    const first = valueOf(await change(harness, { trigger: 'enable', idempotency }));
    await harness.passes(2 * day);
    const again = change(harness, { trigger: 'enable', idempotency });
    expect(await isOver(harness, again)).toBe(true);
    expect(valueOf(await again).license).toEqual(first.license);
    expect(await harness.requested()).toEqual([]);
  });
});
