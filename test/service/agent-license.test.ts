import { describe, expect, it } from 'vitest';
import type { LicenseResponse, LicenseChangeRequest } from '../../src/service/services.ts';
import type { Result } from '../../src/domain/problem/problem.ts';
import { StorageError } from '../../src/service/ports.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';
import { licensesOf, tenant, usage } from '../support/harness/agent-licenses.ts';
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
const another = { accountId: 'default', productKey: 'other' };

function verify(harness: ManualHarness, licenseKey = key): Promise<Result<LicenseResponse>> {
  return licensesOf(harness).verify(tenant, licenseKey, never);
}

function change(harness: ManualHarness, changes: Partial<LicenseChangeRequest> = {}) {
  return licensesOf(harness).change({ ...usage, ...changes }, never);
}

/** Whether a promise has settled. */
async function isOver(harness: ManualHarness, promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  void promise.finally(() => (over = true));
  await harness.time.settle();
  return over;
}

function run(harness: ManualHarness): void {
  harness.sync.delivery.run(harness.ending.signal).catch(() => undefined);
}

it('a decorated key is looked up as it is, and then without what surrounds it', async () => {
  await using harness = await createManualHarness({ uses: 5 });
  const found = verify(harness, '"NEW-1".');
  await (await harness.request()).answer({ ...no('missing'), status: 404 });
  const again = await harness.request();
  expect(again.licenseKey).toBe('NEW-1');
  await again.answer(harness.saysOf('NEW-1'));
  expect(valueOf(await found).license.licenseKey).toBe('NEW-1');
});

it('a use of a pasted key is queued for the known key, even while the upstream is down', async () => {
  for (const outcome of ['missing', 'unreachable'] as const) {
    await using harness = await createManualHarness({ uses: 5 });
    const used = change(harness, { licenseKey: `\u2066${key}` });
    await (await harness.request()).answer(no(outcome));
    expect(valueOf(await used)).toMatchObject({ license: { licenseKey: key, uses: 6 } });
    expect(harness.store.operations.openOf(key, null, { limit: 9, offset: 0 })).toHaveLength(1);
  }
});

describe('verify on an agent', () => {
  it('a fresh key is answered from the snapshot, with its freshness', async () => {
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
  ] as const)('a key in %s is answered at once and read in the background', async (freshness, age) => {
    await using harness = await createManualHarness();
    await harness.passes(age);
    const { provenance } = valueOf(await verify(harness));
    expect(provenance).toMatchObject({ freshness, cache: 'hit' });
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('a key past its grace is read first, and is 503 if the upstream does not answer', async () => {
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
  ])('the 503 of a key past its grace contains the reason: %s', async (_, says, why) => {
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

  it('a disabled key is answered at any age', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.passes(20 * day);
    const { license, provenance } = valueOf(await verify(harness));
    expect([license.enabled, provenance.freshness]).toEqual([false, 'expired']);
  });

  it('a known pasted key is answered if the upstream has no key of the pasted form', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const pasted = `${key}\u200b`;
    const answer = verify(harness, pasted);
    const request = await harness.request();
    expect(request).toMatchObject({ licenseKey: pasted });
    await request.answer(no('missing'));
    expect(valueOf(await answer)).toMatchObject({ license: { licenseKey: key, uses: 5 } });
    expect(await harness.requested()).toEqual([]);
  });

  it('a known pasted key is answered while the upstream is down', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const answer = verify(harness, `${key}\u200b`);
    await (await harness.request()).answer(no('unreachable'));
    expect(valueOf(await answer)).toMatchObject({ license: { licenseKey: key, uses: 5 } });
  });

  it('an unknown pasted key is 503, not 404, if the upstream answered for only one of its forms', async () => {
    await using harness = await createManualHarness();
    const answer = verify(harness, 'NE\u00adW');
    await (await harness.request()).answer(no('unreachable'));
    const later = await harness.request();
    expect(later).toMatchObject({ licenseKey: 'NEW' });
    await later.answer(no('missing'));
    expect(refusalOf(await answer)).toBe('upstream_unreachable');
  });

  it('a key that the upstream has exactly in the pasted form is answered as that key', async () => {
    await using harness = await createManualHarness();
    const answer = verify(harness, 'OLD–1');
    await (await harness.request()).answer(harness.saysOf('OLD–1'));
    expect(valueOf(await answer)).toMatchObject({ license: { licenseKey: 'OLD–1' } });
    expect(valueOf(await verify(harness, 'OLD–1'))).toMatchObject({ license: { licenseKey: 'OLD–1' } });
    expect(await harness.requested()).toEqual([]);
  });

  it('an unknown key is looked up under the products that the credential can see', async () => {
    await using harness = await createManualHarness();
    const ask = (caller: typeof anyProduct | typeof another) =>
      licensesOf(harness, { productIds: ['first', productKey] }).verify(caller, 'NEW', never);
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

  it('an unknown key is 404 if the upstream does not know it, and 503 with the reason if the upstream cannot answer', async () => {
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

  it('a key of a product that was removed from the configuration is 404 for all callers, without a request to the upstream', async () => {
    await using harness = await createManualHarness();
    const without = licensesOf(harness, { productIds: ['other'] });
    for (const caller of [anyProduct, tenant]) {
      expect(refusalOf(await without.verify(caller, key, never))).toBe('license_not_found');
      expect(without.verifyNow?.(caller, key)).toBeNull();
    }
    expect(await harness.requested()).toEqual([]);
    expect(valueOf(await licensesOf(harness).verify(anyProduct, key, never)).license.enabled).toBe(true);
  });

  it('a key of another product is 404 without a request to the upstream', async () => {
    await using harness = await createManualHarness();
    expect(refusalOf(await licensesOf(harness).verify(another, key, never))).toBe('license_not_found');
    expect(await harness.requested()).toEqual([]);
  });

  it('a verify updates the date of the last verify if that is in the future because the clock was corrected', async () => {
    await using harness = await createManualHarness();
    const ahead = harness.now + 60 * day;
    harness.store.snapshots.touch(key, ahead, harness.monotonic);
    valueOf(await verify(harness));
    await harness.time.settle();
    expect(harness.snapshot.askedAt).toBe(harness.now);
  });

  it('a verify keeps a key among the refreshed keys, without a write for each verify', async () => {
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

  it('a look-up of an unknown key is refused if too many look-ups of its credential wait; a known key never is', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, lookups: { perSecond: 0.1, maxWaiting: 1 } };
    const ask = (licenseKey: string): Promise<Result<LicenseResponse>> =>
      licensesOf(harness).verify(tenant, licenseKey, never, { credential: 'till', connection: '' });
    void ask('FIRST');
    await (await harness.request()).answer({ ...no('missing'), status: 404 });
    const refused = ask('SECOND');
    void ask('THIRD');
    expect(await refused).toMatchObject({ problem: { code: 'rate_limited', retryAfterS: 10 } });
    await harness.passes(14 * day + 1);
    await (await harness.request()).answer({ ...no('missing'), status: 404 });
    void ask('FOURTH');
    await (await harness.request()).answer({ ...no('missing'), status: 404 });
    const answer = ask(key);
    await (await harness.request()).answer(harness.says(5));
    expect(valueOf(await answer).provenance.freshness).toBe('fresh');
  });
});

describe('verify on an agent with a full disk', () => {
  it('an unknown key is answered from the upstream’s response if the disk is full', async () => {
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

  it('a key past its grace is answered from the upstream’s response if the disk is full', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.passes(30 * day);
    const answer = verify(harness);
    harness.fault = new StorageError('full', null);
    await (await harness.request()).answer(harness.says(7));
    expect(valueOf(await answer)).toMatchObject({ license: { uses: 7 }, provenance: { freshness: 'fresh' } });
  });

  it('a key with pending changes is not answered from the upstream’s response if the disk is full', async () => {
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
  it('a change is answered at once, and sent in the background', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    run(harness);
    await harness.time.settle();
    expect(valueOf(await change(harness))).toMatchObject({
      license: { uses: 6 },
      provenance: { pending: 1, cache: 'hit' },
    });
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('a change is answered with the upstream’s response if the caller waits for it', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    run(harness);
    const answer = change(harness, { waitMs: minute });
    const request = await harness.request();
    expect(await isOver(harness, answer)).toBe(false);
    await request.answer(harness.says(6));
    expect(valueOf(await answer)).toMatchObject({ license: { uses: 6 }, provenance: { pending: 0 } });
  });

  it('a change of an unknown key reads the key first, and is refused if the upstream cannot answer', async () => {
    await using harness = await createManualHarness();
    const refused = change(harness, { licenseKey: 'NEW' });
    await (await harness.request()).answer(no('unreachable'));
    expect(refusalOf(await refused)).toBe('upstream_unreachable');
    const taken = change(harness, { licenseKey: 'NEW' });
    await (await harness.request()).answer(harness.saysOf('NEW'));
    expect(valueOf(await taken)).toMatchObject({ license: { licenseKey: 'NEW', uses: 1 } });
  });

  it('a change of a disabled key past its grace reads the key first', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.passes(14 * day + 1);
    const answer = change(harness);
    await (await harness.request()).answer(harness.says(5));
    expect(valueOf(await answer)).toMatchObject({ license: { uses: 6, enabled: true } });
  });

  it('a change of a key whose product was removed from the configuration is 404, and queued operations keep waiting', async () => {
    await using harness = await createManualHarness();
    await change(harness);
    const late = { ...usage, tenant: anyProduct };
    expect(refusalOf(await licensesOf(harness, { productIds: ['other'] }).change(late, never))).toBe(
      'license_not_found',
    );
    expect(harness.local.pending).toBe(1);
  });

  it('a repeated change gets its stored response even if its product was removed from the configuration', async () => {
    await using harness = await createManualHarness();
    const idempotency = { credential: 'token:t', key: 'once', fingerprint: 'f' };
    const first = valueOf(await change(harness, { idempotency }));
    const again = await licensesOf(harness, { productIds: [] }).change({ ...usage, idempotency }, never);
    expect(valueOf(again).license).toEqual(first.license);
  });

  it('a change of a key of another product is 404', async () => {
    await using harness = await createManualHarness();
    expect(refusalOf(await change(harness, { tenant: another }))).toBe('license_not_found');
    expect(harness.local.pending).toBe(0);
  });
});

it('a response to verify is cacheable on an agent until the agent must note again that the key is in use', async () => {
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
  it('an enable of a disabled key waits for the upstream up to the timeout', async () => {
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

  it('an enable waits until its first failure at most, and is not visible before it is delivered', async () => {
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
  ])('an enable waits %s, and no longer', async (_, isAgent, longest) => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    run(harness);
    const answer = change(harness, { trigger: 'enable', isAgent });
    await harness.passes(longest - 1);
    expect(await isOver(harness, answer)).toBe(false);
    await harness.passes(1);
    expect(await isOver(harness, answer)).toBe(true);
  });

  it('an enable of a key that is disabled here is recorded without a read, however old the snapshot is', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.passes(day + 1);
    void change(harness, { trigger: 'enable' });
    expect(await harness.requested()).toEqual([]);
    expect(harness.store.operations.head(key, 'state')?.kind).toBe('enable');
  });

  it('an enable of a key of another product does not ask the upstream', async () => {
    await using harness = await createManualHarness();
    await harness.passes(day + 1);
    const answer = change(harness, { trigger: 'enable', tenant: another });
    expect(await harness.requested()).toEqual([]);
    expect(refusalOf(await answer)).toBe('license_not_found');
  });

  it('an enable of a key that was seen enabled reads the key first if the snapshot is not fresh', async () => {
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

  it('only an enable reads the key first', async () => {
    await using harness = await createManualHarness();
    await harness.passes(day + 1);
    expect(valueOf(await change(harness, { trigger: 'disable' })).license.enabled).toBe(false);
    expect(await harness.requested()).toEqual([]);
  });
});

describe('a change on an agent with an idempotency key', () => {
  const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };

  it('a repeated change gets its stored response, and neither asks the upstream nor waits again', async () => {
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

  it('a change that is repeated before its delivery does not wait for the delivery', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const first = valueOf(await change(harness, { idempotency }));
    const again = change(harness, { idempotency, waitMs: minute });
    expect(await isOver(harness, again)).toBe(true);
    expect(valueOf(await again)).toEqual(first);
  });

  it('a repeated enable of a key that is no longer fresh does not read the key again', async () => {
    await using harness = await createManualHarness();
    const first = valueOf(await change(harness, { trigger: 'enable', idempotency }));
    await harness.passes(2 * day);
    const again = change(harness, { trigger: 'enable', idempotency });
    expect(await isOver(harness, again)).toBe(true);
    expect(valueOf(await again).license).toEqual(first.license);
    expect(await harness.requested()).toEqual([]);
  });
});

it('refuses a change that the store has no request for, and puts nothing into the outbox', async () => {
  await using harness = await createManualHarness();
  const service = licensesOf(harness, {
    takes(trigger, licenseKey) {
      expect(licenseKey).toBe(key);
      return trigger === 'disable';
    },
  });
  expect(refusalOf(await service.change(usage, never))).toBe('not_offered_by_store');
  expect(harness.store.operations.queue(key, 'counter')).toEqual([]);
  expect((await service.change({ ...usage, trigger: 'disable' }, never)).ok).toBe(true);
});
