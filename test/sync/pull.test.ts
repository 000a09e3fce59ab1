import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import { lost, minute, no, second } from '../support/stage/service-stage.ts';
import { givenManual, key, never, productKey, type ManualStage } from '../support/stage/manual-stage.ts';

type Sought = { productIds?: readonly string[]; licenseKey?: string; signal?: AbortSignal };

function find(stage: ManualStage, sought: Sought = {}) {
  const { productIds = [productKey], licenseKey = key, signal = never } = sought;
  stage.options = { ...stage.options, productIds };
  return stage.sync.reads.find(productIds, licenseKey, signal, null);
}

describe('a key that a caller asks for', () => {
  it('is known once the answer is in the store', async () => {
    await using stage = await givenManual({ uses: 5 });
    const found = find(stage);
    const request = await stage.request();
    expect(request).toMatchObject({ kind: 'verify', productKey, licenseKey: key });
    await request.answer(stage.says(7));
    expect(await found).toEqual({ found: 'known' });
    expect(stage.observation.license.uses).toBe(7);
  });

  it('is asked for once for all who wait for it, and anew after that', async () => {
    await using stage = await givenManual();
    const all = [find(stage), find(stage)];
    await (await stage.request()).answer(stage.says(5));
    expect(await Promise.all(all)).toEqual([{ found: 'known' }, { found: 'known' }]);
    void find(stage);
    expect(await stage.requested()).toEqual([`verify ${key}`]);
  });

  it('is looked for under one product after the other until one has it', async () => {
    await using stage = await givenManual();
    const found = find(stage, { productIds: ['first', 'second', 'third'] });
    for (const [product, outcome] of [
      ['first', no('missing')],
      ['second', stage.says(5)],
    ] as const) {
      const request = await stage.request();
      expect(request.productKey).toBe(product);
      await request.answer(outcome);
    }
    expect(await found).toEqual({ found: 'known' });
    expect(await stage.requested()).toEqual([]);
  });

  it('is missing when no product has it; nobody asks again for a while', async () => {
    await using stage = await givenManual();
    const found = find(stage, { licenseKey: 'NONE' });
    await (await stage.request()).answer(no('missing'));
    expect(await found).toEqual({ found: 'missing' });
    await stage.passes(minute - 1);
    expect(await find(stage, { licenseKey: 'NONE' })).toEqual({ found: 'missing' });
    expect(await stage.requested()).toEqual([]);
    await stage.passes(1);
    void find(stage, { licenseKey: 'NONE' });
    expect(await stage.requested()).toEqual(['verify NONE']);
  });

  it('is asked for by nobody else once the answer is there, also where who asked for it has left', async () => {
    await using stage = await givenManual();
    const leaving = new AbortController();
    const leaver = find(stage, { licenseKey: 'NONE', signal: leaving.signal });
    const request = await stage.request();
    leaving.abort(new Error('gone'));
    await expect(leaver).rejects.toThrow('gone');
    // Who comes in the very moment of the answer.
    const next = stage.sync.reads
      .read(productKey, 'NONE', 'caller')
      .then(() => find(stage, { licenseKey: 'NONE' }));
    await request.answer(no('missing'));
    expect(await stage.requested()).toEqual([]);
    expect(await next).toEqual({ found: 'missing' });
    expect(await find(stage, { licenseKey: 'NONE' })).toEqual({ found: 'missing' });
  });

  it('is remembered as unknown by a caller who joined a refresh of it', async () => {
    await using stage = await givenManual();
    const refreshed = stage.sync.reads.read(productKey, 'NONE', 'refresh');
    const found = find(stage, { licenseKey: 'NONE' });
    await (await stage.request()).answer(no('missing'));
    await refreshed;
    expect(await found).toEqual({ found: 'missing' });
    const again = find(stage, { licenseKey: 'NONE' });
    expect(await stage.requested()).toEqual([]);
    expect(await again).toEqual({ found: 'missing' });
  });

  it('is not missing as long as one product could not be asked', async () => {
    await using stage = await givenManual();
    const found = find(stage, { productIds: ['first', 'second'], licenseKey: 'NONE' });
    await (await stage.request()).answer(no('unreachable'));
    await (await stage.request()).answer(no('missing'));
    expect(await found).toEqual({ found: 'unreachable', detail: 'no: unreachable' });
    // Only what was answered is remembered.
    void find(stage, { productIds: ['first', 'second'], licenseKey: 'NONE' });
    expect(await stage.request()).toMatchObject({ productKey: 'first' });
  });

  it('keeps no caller who leaves; who stays has the answer', async () => {
    await using stage = await givenManual();
    const leaving = new AbortController();
    const leaver = find(stage, { signal: leaving.signal });
    const stayer = find(stage);
    const request = await stage.request();
    leaving.abort(new Error('gone'));
    await expect(leaver).rejects.toThrow('gone');
    await request.answer(stage.says(6));
    expect(await stayer).toEqual({ found: 'known' });
    await expect(find(stage, { signal: leaving.signal })).rejects.toThrow('gone');
  });

  it('cannot be had while the upstream is away, and is not waited for', async () => {
    await using stage = await givenManual();
    for (let time = 0; time < 3; time += 1) {
      void find(stage);
      await (await stage.request()).answer(lost);
    }
    const detail = 'the upstream is away (the answer was lost)';
    expect(await find(stage)).toEqual({ found: 'unreachable', detail });
    expect(await stage.requested()).toEqual([]);
  });

  it('cannot be had under a secret that was refused, which costs nobody a turn', async () => {
    await using stage = await givenManual();
    stage.options = { ...stage.options, rate: 0.5 };
    void find(stage, { productIds: ['refused'] });
    await (await stage.request()).answer(no('unauthorized'));
    await stage.passes(2 * second);
    const detail = 'the upstream refuses the secret of this product';
    for (let time = 0; time < 3; time += 1) {
      expect(await find(stage, { productIds: ['refused'] })).toEqual({ found: 'unreachable', detail });
    }
    void find(stage);
    expect(await stage.requested()).toEqual([`verify ${key}`]);
  });

  it('cannot be had of a product that is not configured, which costs nobody a turn', async () => {
    await using stage = await givenManual();
    stage.options = { ...stage.options, productIds: [], rate: 0.5 };
    for (let time = 0; time < 3; time += 1) {
      expect(await stage.sync.reads.read(productKey, key, 'caller')).toMatchObject({
        detail: 'no secret is configured for the product of this key',
      });
    }
    void find(stage);
    expect(await stage.requested()).toEqual([`verify ${key}`]);
  });

  it('takes its turn at the rate', async () => {
    await using stage = await givenManual();
    stage.options = { ...stage.options, rate: 0.5 };
    void find(stage);
    void find(stage, { licenseKey: 'OTHER' });
    await (await stage.request()).answer(stage.says(5));
    await stage.passes(2 * second);
    expect(await stage.requested()).toEqual(['verify OTHER']);
  });

  it('is not kept waiting for room on a full disk', async () => {
    await using stage = await givenManual();
    stage.fault = new StorageError('full', null);
    const found = find(stage);
    await (await stage.request()).answer(stage.says(5));
    expect(await found).toMatchObject({
      found: 'known',
      unstored: { license: { licenseKey: key, uses: 5 } },
    });
  });

  it('that the upstream does not know is missing, although the disk is full', async () => {
    await using stage = await givenManual();
    stage.fault = new StorageError('full', null);
    const found = find(stage, { licenseKey: 'OTHER' });
    await (await stage.request()).answer(no('missing'));
    expect(await found).toEqual({ found: 'missing' });
  });
});

describe('a stale key', () => {
  it('is read behind its answer, unless a thousand others wait for that already', async () => {
    await using stage = await givenManual();
    const keys = Array.from({ length: 1_002 }, (_, index) => `KEY-${index + 10}`);
    for (const licenseKey of keys) stage.sync.reads.refresh(productKey, licenseKey);
    expect(await stage.requested()).toEqual(keys.slice(0, 1_000).map((each) => `verify ${each}`));
    const [first] = stage.arrived.splice(0);
    await first?.answer(stage.saysOf(first.licenseKey));
    for (const licenseKey of keys.slice(-2)) stage.sync.reads.refresh(productKey, licenseKey);
    expect(await stage.requested()).toEqual(['verify KEY-1010']);
  });
});

describe('a read of a key', () => {
  it.each(['counter', 'state'] as const)(
    'waits for the request that is under way in its %s lane',
    async (lane) => {
      await using stage = await givenManual();
      const other = await stage.lanes.enter(key, [lane], never);
      void find(stage);
      expect(await stage.requested()).toEqual([]);
      other[Symbol.dispose]();
      expect(await stage.requested()).toEqual([`verify ${key}`]);
    },
  );

  it.each(['counter', 'state'] as const)(
    'lets nothing into the %s lane until it is in the store',
    async (lane) => {
      await using stage = await givenManual();
      void find(stage);
      const request = await stage.request();
      let usesThen: number | null = null;
      void stage.lanes.enter(key, [lane], never).then(() => (usesThen = stage.observation.license.uses));
      await stage.time.settle();
      expect(usesThen).toBeNull();
      await request.answer(stage.says(9));
      expect(usesThen).toBe(9);
    },
  );

  it('settles no doubt when it was sent before the fence was over', async () => {
    await using stage = await givenManual({ uses: 5 });
    const use = await stage.record('usage');
    await stage.answer(await stage.send('counter'), lost);
    await stage.passes(minute - 1);
    void find(stage);
    const early = await stage.request();
    await stage.passes(2);
    await early.answer(stage.says(5));
    expect(stage.stateOf(use)).toBe('uncertain');
    void find(stage);
    await (await stage.request()).answer(stage.says(6));
    expect(stage.stateOf(use)).toBe('delivered');
  });

  it.each([
    ['as a warning where there should be none', 'single', ['another writer changed the count of a key']],
    ['and does not warn where there may be one', 'many', []],
  ] as const)('tells when another writer has changed the count, %s', async (_, writers, warnings) => {
    await using stage = await givenManual({ uses: 5 });
    stage.policy = { ...stage.policy, writers };
    void find(stage);
    await (await stage.request()).answer(stage.says(8));
    expect(stage.unexpected).toEqual([{ licenseKey: key, expected: 5, got: 8 }]);
    expect(stage.warnings).toEqual(warnings);
    void find(stage);
    await (await stage.request()).answer(stage.says(8));
    expect(stage.unexpected).toHaveLength(1);
  });

  it('under the lanes of the loops waits for room on a full disk', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.fault = new StorageError('full', null);
    const read = stage.sync.reads.readNow(productKey, key);
    await (await stage.request()).answer(stage.says(7));
    stage.fault = null;
    expect(stage.observation.license.uses).toBe(5);
    await stage.passes(second);
    expect(await read).toMatchObject({ outcome: 'applied' });
    expect(stage.observation.license.uses).toBe(7);
  });

  it('under the lanes of the loops ends with a store that failed', async () => {
    await using stage = await givenManual();
    stage.fault = new StorageError('failed', null);
    const read = stage.sync.reads.readNow(productKey, key);
    const ended = read.catch(String);
    await (await stage.request()).answer(stage.says(7));
    expect(await ended).toBe('StorageError: the storage failed');
  });

  it('that is answered 404 asks for another known key, and believes nothing for a minute when that is 404 too', async () => {
    await using stage = await givenManual();
    await stage.learn('OTHER');
    const read = () => void stage.sync.reads.read(productKey, key, 'caller');
    read();
    await (await stage.request()).answer(no('missing'));
    const witness = await stage.request();
    expect(witness.licenseKey).toBe('OTHER');
    await witness.answer(no('missing'));
    await stage.passes(minute - 1);
    read();
    await (await stage.request()).answer(no('missing'));
    expect([await stage.requested(), stage.observation.missingSince]).toEqual([[], null]);
    await stage.passes(1);
    read();
    await (await stage.request()).answer(no('missing'));
    await (await stage.request()).answer(stage.saysOf('OTHER'));
    expect(stage.observation.missingSince).toBe(stage.now);
  });

  it('that is answered 404 is not believed when no other key may be asked for any more', async () => {
    await using stage = await givenManual();
    await stage.learn('OTHER');
    void stage.sync.reads.read(productKey, key, 'caller');
    const request = await stage.request();
    stage.sync.uplink.pause();
    await request.answer(no('missing'));
    expect([await stage.requested(), stage.observation.missingSince]).toEqual([[], null]);
  });

  it('that is answered 404 asks for none that was 404 itself', async () => {
    await using stage = await givenManual();
    await stage.learn('THIRD');
    await stage.passes(second);
    await stage.learn('GONE');
    void stage.sync.reads.read(productKey, 'GONE', 'caller');
    await (await stage.request()).answer(no('missing'));
    const witness = await stage.request();
    await witness.answer(stage.saysOf(witness.licenseKey));
    void stage.sync.reads.read(productKey, key, 'caller');
    await (await stage.request()).answer(no('missing'));
    expect(await stage.requested()).toEqual(['verify THIRD']);
  });

  it('behind an answer is made once, and is in the store', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.sync.reads.refresh(productKey, key);
    stage.sync.reads.refresh(productKey, key);
    await (await stage.request()).answer(stage.says(6));
    expect(stage.observation.license.uses).toBe(6);
  });
});
