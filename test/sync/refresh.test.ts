import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import { refresh } from '../../src/sync/refresh.ts';
import { hour, minute, no, second } from '../support/stage/service-stage.ts';
import { givenManual, never, productKey, type ManualStage } from '../support/stage/manual-stage.ts';

/** One more than are looked up at a time. */
const manyKeys = Array.from({ length: 51 }, (_, index) => `KEY-${index + 10}`);

/** Keys are refreshed an hour after they were read, and looked for every three minutes. */
async function givenRefreshing(keys: readonly string[]): Promise<ManualStage> {
  const stage = await givenManual();
  stage.policy = { ...stage.policy, refreshMs: hour };
  for (const licenseKey of keys) await stage.learn(licenseKey);
  const { store, clock, sync } = stage;
  const parts = { reader: store, clock, reads: sync.reads, uplink: sync.uplink, refreshMs: () => hour };
  void refresh(parts, stage.ending.signal);
  return stage;
}

describe('a key that is due for a refresh', () => {
  it('is read once, and then rests until its next time', async () => {
    await using stage = await givenRefreshing(['A']);
    await stage.passes(hour - 1);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(3 * minute);
    const request = await stage.request();
    expect(request).toMatchObject({ kind: 'verify', licenseKey: 'A' });
    await request.answer(stage.saysOf('A'));
    await stage.passes(hour - 3 * minute);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(6 * minute);
    expect(await stage.requested()).toEqual(['verify A']);
  });

  it('is read again, and sooner, where the read brought nothing', async () => {
    await using stage = await givenRefreshing(['A']);
    await stage.passes(hour);
    const { answer } = await stage.request();
    await answer(no('rejected'));
    await stage.passes(4 * minute);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(6 * minute);
    expect(await stage.requested()).toEqual(['verify A']);
  });

  it('does not wait for a rest when more are due than are looked up at a time', async () => {
    await using stage = await givenRefreshing(manyKeys);
    await stage.passes(hour + 3 * minute);
    expect(await stage.requested()).toHaveLength(50);
    for (const request of stage.arrived.splice(0)) await request.answer(stage.saysOf(request.licenseKey));
    expect(await stage.requested()).toHaveLength(1);
  });

  it('rests on a full disk, however many there are, since it would be due again at once', async () => {
    await using stage = await givenRefreshing(manyKeys);
    await stage.passes(hour + 3 * minute);
    expect(await stage.requested()).toHaveLength(50);
    stage.fault = new StorageError('full', null);
    for (const request of stage.arrived.splice(0)) await request.answer(stage.saysOf(request.licenseKey));
    expect(await stage.requested()).toEqual([]);
    stage.fault = null;
    await stage.passes(3 * minute);
    expect(await stage.requested()).toHaveLength(50);
  });

  it('waits while the upstream is away, however many there are, and is read when it is back', async () => {
    await using stage = await givenRefreshing(manyKeys);
    stage.sync.uplink.pause();
    await stage.passes(2 * hour);
    expect(await stage.requested()).toEqual([]);
    stage.sync.uplink.resume();
    await stage.passes(3 * minute);
    expect(await stage.requested()).toHaveLength(50);
  });

  it('is read after what a caller waits for', async () => {
    await using stage = await givenRefreshing(['A', 'B']);
    stage.options = { ...stage.options, rate: 0.5 };
    await stage.passes(hour);
    const { licenseKey, answer } = await stage.request();
    void stage.sync.reads.find([productKey], 'C', never, null);
    await answer(stage.saysOf(licenseKey));
    await stage.passes(2 * second);
    expect(await stage.requested()).toEqual(['verify C']);
  });

  it('is read no more once the process ends', async () => {
    await using stage = await givenRefreshing(['A']);
    stage.ending.abort();
    await stage.passes(2 * hour);
    expect(await stage.requested()).toEqual([]);
  });
});
