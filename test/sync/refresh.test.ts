import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import { refresh } from '../../src/sync/background-reads.ts';
import { hour, minute, no, second } from '../support/harness/service-harness.ts';
import {
  createManualHarness,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';

/** One more than a batch. */
const manyKeys = Array.from({ length: 51 }, (_, index) => `KEY-${index + 10}`);

/** Keys are refreshed an hour after a read; due keys are looked for every three minutes. */
async function createRefreshing(keys: readonly string[]): Promise<ManualHarness> {
  const harness = await createManualHarness();
  harness.policy = { ...harness.policy, refreshMs: hour };
  for (const licenseKey of keys) await harness.learn(licenseKey);
  const { store, writer, clock, sync } = harness;
  const policy = () => harness.policy;
  const parts = { reader: store, writer, clock, fetcher: sync.fetcher, limiter: sync.limiter, policy };
  void refresh(parts, harness.ending.signal);
  return harness;
}

describe('a key that is due for a refresh', () => {
  it('a due key is read once, and then rests until its next time', async () => {
    await using harness = await createRefreshing(['A']);
    await harness.passes(hour - 1);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(3 * minute);
    const request = await harness.request();
    expect(request).toMatchObject({ kind: 'verify', licenseKey: 'A' });
    await request.answer(harness.saysOf('A'));
    await harness.passes(hour - 3 * minute);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(6 * minute);
    expect(await harness.requested()).toEqual(['verify A']);
  });

  it('a due key is read again, and earlier, if the read failed', async () => {
    await using harness = await createRefreshing(['A']);
    await harness.passes(hour);
    const { answer } = await harness.request();
    await answer(no('rejected'));
    await harness.passes(4 * minute);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(6 * minute);
    expect(await harness.requested()).toEqual(['verify A']);
  });

  it('a due key does not wait for a rest if more keys are due than one batch has', async () => {
    await using harness = await createRefreshing(manyKeys);
    await harness.passes(hour + 3 * minute);
    expect(await harness.requested()).toHaveLength(50);
    for (const request of harness.arrived.splice(0)) await request.answer(harness.saysOf(request.licenseKey));
    expect(await harness.requested()).toHaveLength(1);
  });

  it('due keys rest on a full disk, however many there are, because they would be due again at once', async () => {
    await using harness = await createRefreshing(manyKeys);
    await harness.passes(hour + 3 * minute);
    expect(await harness.requested()).toHaveLength(50);
    harness.fault = new StorageError('full', null);
    for (const request of harness.arrived.splice(0)) await request.answer(harness.saysOf(request.licenseKey));
    expect(await harness.requested()).toEqual([]);
    harness.fault = null;
    await harness.passes(3 * minute);
    expect(await harness.requested()).toHaveLength(50);
  });

  it('due keys wait while the upstream is down, however many there are, and are read when it is back', async () => {
    await using harness = await createRefreshing(manyKeys);
    harness.sync.limiter.pause();
    await harness.passes(2 * hour);
    expect(await harness.requested()).toEqual([]);
    harness.sync.limiter.resume();
    await harness.passes(3 * minute);
    expect(await harness.requested()).toHaveLength(50);
  });

  it('a due key is read after the keys that callers wait for', async () => {
    await using harness = await createRefreshing(['A', 'B']);
    harness.options = { ...harness.options, rate: 0.5 };
    await harness.passes(hour);
    const { licenseKey, answer } = await harness.request();
    void harness.sync.fetcher.fetchForCaller([productKey], 'C', never, null);
    await answer(harness.saysOf(licenseKey));
    await harness.passes(2 * second);
    expect(await harness.requested()).toEqual(['verify C']);
  });

  it('a due key is not read once the process ends', async () => {
    await using harness = await createRefreshing(['A']);
    harness.ending.abort();
    await harness.passes(2 * hour);
    expect(await harness.requested()).toEqual([]);
  });
});
