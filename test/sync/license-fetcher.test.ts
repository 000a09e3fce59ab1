import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import { lost, minute, no, second } from '../support/harness/service-harness.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';

type Sought = { productIds?: readonly string[]; licenseKey?: string; signal?: AbortSignal };

function find(harness: ManualHarness, sought: Sought = {}) {
  const { productIds = [productKey], licenseKey = key, signal = never } = sought;
  harness.options = { ...harness.options, productIds };
  return harness.sync.fetcher.fetchForCaller(productIds, licenseKey, signal, null);
}

describe('a key that a caller asks for', () => {
  it('a requested key is known once the response is stored', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const found = find(harness);
    const request = await harness.request();
    expect(request).toMatchObject({ kind: 'verify', productKey, licenseKey: key });
    await request.answer(harness.says(7));
    expect(await found).toEqual({ found: 'known' });
    expect(harness.snapshot.license.uses).toBe(7);
  });

  it('a requested key is read once for all callers who wait, and again after that', async () => {
    await using harness = await createManualHarness();
    const all = [find(harness), find(harness)];
    await (await harness.request()).answer(harness.says(5));
    expect(await Promise.all(all)).toEqual([{ found: 'known' }, { found: 'known' }]);
    void find(harness);
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('a requested key is looked up under each product until one has it', async () => {
    await using harness = await createManualHarness();
    const found = find(harness, { productIds: ['first', 'second', 'third'] });
    for (const [product, outcome] of [
      ['first', no('missing')],
      ['second', harness.says(5)],
    ] as const) {
      const request = await harness.request();
      expect(request.productKey).toBe(product);
      await request.answer(outcome);
    }
    expect(await found).toEqual({ found: 'known' });
    expect(await harness.requested()).toEqual([]);
  });

  it('a requested key is missing if no product has it, and is not looked up again for a while', async () => {
    await using harness = await createManualHarness();
    const found = find(harness, { licenseKey: 'NONE' });
    await (await harness.request()).answer(no('missing'));
    expect(await found).toEqual({ found: 'missing' });
    await harness.passes(2 * second - 1);
    expect(await find(harness, { licenseKey: 'NONE' })).toEqual({ found: 'missing' });
    expect(await harness.requested()).toEqual([]);
    await harness.passes(1);
    void find(harness, { licenseKey: 'NONE' });
    expect(await harness.requested()).toEqual(['verify NONE']);
  });

  it('a requested key is not looked up again after the response, even if the caller has left', async () => {
    await using harness = await createManualHarness();
    const leaving = new AbortController();
    const leaver = find(harness, { licenseKey: 'NONE', signal: leaving.signal });
    const request = await harness.request();
    leaving.abort(new Error('gone'));
    await expect(leaver).rejects.toThrow('gone');
    // This caller comes at the moment of the response.
    const next = harness.sync.fetcher
      .fetch(productKey, 'NONE', 'caller')
      .then(() => find(harness, { licenseKey: 'NONE' }));
    await request.answer(no('missing'));
    expect(await harness.requested()).toEqual([]);
    expect(await next).toEqual({ found: 'missing' });
    expect(await find(harness, { licenseKey: 'NONE' })).toEqual({ found: 'missing' });
  });

  it('a requested key is remembered as unknown even if its caller joined a refresh', async () => {
    await using harness = await createManualHarness();
    const refreshed = harness.sync.fetcher.fetch(productKey, 'NONE', 'refresh');
    const found = find(harness, { licenseKey: 'NONE' });
    await (await harness.request()).answer(no('missing'));
    await refreshed;
    expect(await found).toEqual({ found: 'missing' });
    const again = find(harness, { licenseKey: 'NONE' });
    expect(await harness.requested()).toEqual([]);
    expect(await again).toEqual({ found: 'missing' });
  });

  it('a requested key is not missing while one product could not be asked', async () => {
    await using harness = await createManualHarness();
    const found = find(harness, { productIds: ['first', 'second'], licenseKey: 'NONE' });
    await (await harness.request()).answer(no('unreachable'));
    await (await harness.request()).answer(no('missing'));
    expect(await found).toEqual({ found: 'unreachable', detail: 'no: unreachable' });
    void find(harness, { productIds: ['first', 'second'], licenseKey: 'NONE' });
    expect(await harness.request()).toMatchObject({ productKey: 'first' });
  });

  it('a caller who leaves does not wait, and the other callers get the response', async () => {
    await using harness = await createManualHarness();
    const leaving = new AbortController();
    const leaver = find(harness, { signal: leaving.signal });
    const stayer = find(harness);
    const request = await harness.request();
    leaving.abort(new Error('gone'));
    await expect(leaver).rejects.toThrow('gone');
    await request.answer(harness.says(6));
    expect(await stayer).toEqual({ found: 'known' });
    await expect(find(harness, { signal: leaving.signal })).rejects.toThrow('gone');
  });

  it('a requested key is unreachable while the upstream is down, without a wait', async () => {
    await using harness = await createManualHarness();
    for (let time = 0; time < 3; time += 1) {
      void find(harness);
      await (await harness.request()).answer(lost);
    }
    const detail = 'the upstream is away (the answer was lost)';
    expect(await find(harness)).toEqual({ found: 'unreachable', detail });
    expect(await harness.requested()).toEqual([]);
  });

  it('a requested key is unreachable with a rejected secret, without using a turn', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, rate: 0.5 };
    void find(harness, { productIds: ['refused'] });
    await (await harness.request()).answer(no('unauthorized'));
    await harness.passes(2 * second);
    const detail = 'the upstream refuses the secret of this product';
    for (let time = 0; time < 3; time += 1) {
      expect(await find(harness, { productIds: ['refused'] })).toEqual({ found: 'unreachable', detail });
    }
    void find(harness);
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('a requested key of a product that is not configured is unreachable, without using a turn', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, productIds: [], rate: 0.5 };
    for (let time = 0; time < 3; time += 1) {
      expect(await harness.sync.fetcher.fetch(productKey, key, 'caller')).toMatchObject({
        detail: 'no secret is configured for the product of this key',
      });
    }
    void find(harness);
    expect(await harness.requested()).toEqual([`verify ${key}`]);
  });

  it('a requested key takes its turn at the rate', async () => {
    await using harness = await createManualHarness();
    harness.options = { ...harness.options, rate: 0.5 };
    void find(harness);
    void find(harness, { licenseKey: 'OTHER' });
    await (await harness.request()).answer(harness.says(5));
    await harness.passes(2 * second);
    expect(await harness.requested()).toEqual(['verify OTHER']);
  });

  it('a requested key does not wait for room on a full disk', async () => {
    await using harness = await createManualHarness();
    harness.fault = new StorageError('full', null);
    const found = find(harness);
    await (await harness.request()).answer(harness.says(5));
    expect(await found).toMatchObject({
      found: 'known',
      unstored: { license: { licenseKey: key, uses: 5 } },
    });
  });

  it('a requested key that the upstream does not know is missing, although the disk is full', async () => {
    await using harness = await createManualHarness();
    harness.fault = new StorageError('full', null);
    const found = find(harness, { licenseKey: 'OTHER' });
    await (await harness.request()).answer(no('missing'));
    expect(await found).toEqual({ found: 'missing' });
  });
});

describe('a stale key', () => {
  it('a stale key is refreshed in the background, unless a thousand others wait', async () => {
    await using harness = await createManualHarness();
    const keys = Array.from({ length: 1_002 }, (_, index) => `KEY-${index + 10}`);
    for (const licenseKey of keys) harness.sync.fetcher.refresh(productKey, licenseKey);
    expect(await harness.requested()).toEqual(keys.slice(0, 1_000).map((each) => `verify ${each}`));
    const [first] = harness.arrived.splice(0);
    await first?.answer(harness.saysOf(first.licenseKey));
    for (const licenseKey of keys.slice(-2)) harness.sync.fetcher.refresh(productKey, licenseKey);
    expect(await harness.requested()).toEqual(['verify KEY-1010']);
  });
});

describe('a read of a key', () => {
  it.each(['counter', 'state'] as const)(
    'a read waits for the request that is under way in the %s queue of its key',
    async (queue) => {
      await using harness = await createManualHarness();
      const other = await harness.mutex.enter(key, [queue], never);
      void find(harness);
      expect(await harness.requested()).toEqual([]);
      other[Symbol.dispose]();
      expect(await harness.requested()).toEqual([`verify ${key}`]);
    },
  );

  it.each(['counter', 'state'] as const)(
    'a read lets nothing into the %s queue until its response is stored',
    async (queue) => {
      await using harness = await createManualHarness();
      void find(harness);
      const request = await harness.request();
      let usesThen: number | null = null;
      void harness.mutex.enter(key, [queue], never).then(() => (usesThen = harness.snapshot.license.uses));
      await harness.time.settle();
      expect(usesThen).toBeNull();
      await request.answer(harness.says(9));
      expect(usesThen).toBe(9);
    },
  );

  it('a read reconciles nothing if it was sent before the end of the reconcile delay', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const use = await harness.record('usage');
    await harness.answer(await harness.send('counter'), lost);
    await harness.passes(minute - 1);
    void find(harness);
    const early = await harness.request();
    await harness.passes(2);
    await early.answer(harness.says(5));
    expect(harness.stateOf(use)).toBe('uncertain');
    void find(harness);
    await (await harness.request()).answer(harness.says(6));
    expect(harness.stateOf(use)).toBe('delivered');
  });

  it.each([
    ['as a warning where there should be none', 'single', ['another writer changed the count of a key']],
    ['and does not warn where there may be one', 'many', []],
  ] as const)(
    'a read reports that another writer has changed the count, %s',
    async (_, writers, warnings) => {
      await using harness = await createManualHarness({ uses: 5 });
      harness.policy = { ...harness.policy, writers };
      void find(harness);
      await (await harness.request()).answer(harness.says(8));
      expect(harness.unexpected).toEqual([{ licenseKey: key, expected: 5, got: 8 }]);
      expect(harness.warnings).toEqual(warnings);
      void find(harness);
      await (await harness.request()).answer(harness.says(8));
      expect(harness.unexpected).toHaveLength(1);
    },
  );

  it('a read in a queue of a loop waits for room on a full disk', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.fault = new StorageError('full', null);
    const read = harness.sync.fetcher.fetchNow(productKey, key);
    await (await harness.request()).answer(harness.says(7));
    harness.fault = null;
    expect(harness.snapshot.license.uses).toBe(5);
    await harness.passes(second);
    expect(await read).toMatchObject({ outcome: 'applied' });
    expect(harness.snapshot.license.uses).toBe(7);
  });

  it('a read that waits for room on a full disk is not dated in the future if the clock is set right meanwhile', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.passes(2 * minute);
    harness.fault = new StorageError('full', null);
    const read = harness.sync.fetcher.fetchNow(productKey, key);
    await (await harness.request()).answer(harness.says(7));
    harness.fault = null;
    harness.now -= minute;
    await harness.passes(second);
    await read;
    expect(harness.snapshot.license.uses).toBe(7);
    expect(harness.snapshot.confirmedAt).toBeLessThanOrEqual(harness.now);
  });

  it('a read in a queue of a loop ends if the store fails', async () => {
    await using harness = await createManualHarness();
    harness.fault = new StorageError('failed', null);
    const read = harness.sync.fetcher.fetchNow(productKey, key);
    const ended = read.catch(String);
    await (await harness.request()).answer(harness.says(7));
    expect(await ended).toBe('StorageError: the storage failed');
  });

  it('a 404 to a read causes a read of another known key, and counts for nothing for a minute if that is 404 too', async () => {
    await using harness = await createManualHarness();
    await harness.learn('OTHER');
    const read = () => void harness.sync.fetcher.fetch(productKey, key, 'caller');
    read();
    await (await harness.request()).answer(no('missing'));
    const witness = await harness.request();
    expect(witness.licenseKey).toBe('OTHER');
    await witness.answer(no('missing'));
    await harness.passes(minute - 1);
    read();
    await (await harness.request()).answer(no('missing'));
    expect([await harness.requested(), harness.snapshot.missingSince]).toEqual([[], null]);
    await harness.passes(1);
    read();
    await (await harness.request()).answer(no('missing'));
    await (await harness.request()).answer(harness.saysOf('OTHER'));
    expect(harness.snapshot.missingSince).toBe(harness.now);
  });

  it('a 404 to a read does not count if no other key may be read any more', async () => {
    await using harness = await createManualHarness();
    await harness.learn('OTHER');
    void harness.sync.fetcher.fetch(productKey, key, 'caller');
    const request = await harness.request();
    harness.sync.limiter.pause();
    await request.answer(no('missing'));
    expect([await harness.requested(), harness.snapshot.missingSince]).toEqual([[], null]);
  });

  it('a 404 to a read causes no read of a key that was 404 itself', async () => {
    await using harness = await createManualHarness();
    await harness.learn('THIRD');
    await harness.passes(second);
    await harness.learn('GONE');
    void harness.sync.fetcher.fetch(productKey, 'GONE', 'caller');
    await (await harness.request()).answer(no('missing'));
    const witness = await harness.request();
    await witness.answer(harness.saysOf(witness.licenseKey));
    void harness.sync.fetcher.fetch(productKey, key, 'caller');
    await (await harness.request()).answer(no('missing'));
    expect(await harness.requested()).toEqual(['verify THIRD']);
  });

  it('a background read is made once and stored', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.sync.fetcher.refresh(productKey, key);
    harness.sync.fetcher.refresh(productKey, key);
    await (await harness.request()).answer(harness.says(6));
    expect(harness.snapshot.license.uses).toBe(6);
  });
});
