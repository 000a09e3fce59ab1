import { expect, test, vi } from 'vitest';
import { syncControl } from '../../src/daemon/role/agent.ts';
import { StorageError } from '../../src/service/ports.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { minute, second, startSyncHarness, type SyncHarness } from '../support/harness/sync-harness.ts';

const unreachable: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unreachable',
  status: null,
  detail: 'away',
  retryAfterMs: null,
};

const throttled: Outcome<never> = { ...unreachable, reason: 'throttled', status: 429 };
const byNobody = { actor: null, requestId: null, idempotency: null };

async function preload(harness: SyncHarness, licenseKeys: readonly string[]): Promise<void> {
  await harness.writer.write('queuePreload', { licenseKeys, productKey: null });
  harness.sync.wakePreload();
  await harness.time.settle();
}

const isKnown = (harness: SyncHarness, key: string): boolean => harness.store.snapshots.get(key) !== null;

test('preloaded license keys are answered while the upstream is down', async () => {
  using harness = await startSyncHarness(['A', 'B']);
  await preload(harness, ['A', 'UNKNOWN', 'B']);
  await harness.time.advance(10 * second);
  expect(harness.store.preload.progress()).toEqual({ done: 2, failed: 1, left: 0 });
  harness.vendor.instead = () => unreachable;
  expect((await harness.verify('A')).ok).toBe(true);
  expect((await harness.verify('B')).ok).toBe(true);
});

test('a pasted license key is preloaded as the key that the upstream has', async () => {
  using harness = await startSyncHarness(['A-1', 'OLD–1']);
  await preload(harness, ['A–1\u200b', 'OLD–1']);
  await harness.time.advance(10 * second);
  expect(harness.store.preload.progress()).toEqual({ done: 2, failed: 0, left: 0 });
  expect([isKnown(harness, 'A-1'), isKnown(harness, 'OLD–1')]).toEqual([true, true]);
});

test('a license key that is given twice is queued, preloaded and counted once', async () => {
  using harness = await startSyncHarness(['A', 'B']);
  const command = { licenseKeys: ['A', 'A', 'B'], productKey: null };
  expect(await harness.writer.write('queuePreload', command)).toMatchObject({ value: { queued: 2 } });
  harness.sync.wakePreload();
  await harness.time.advance(10 * second);
  expect(harness.store.preload.progress()).toEqual({ done: 2, failed: 0, left: 0 });
});

test('preloading continues after a restart, and reads nothing twice', async () => {
  const keys = Array.from({ length: 120 }, (_, index) => `KEY-${index}`);
  using harness = await startSyncHarness(keys);
  await preload(harness, keys);
  await harness.time.advance(15 * second);
  const { done, left } = harness.store.preload.progress();
  expect(done).toBeGreaterThan(0);
  expect(left).toBeGreaterThan(0);
  await harness.restart();
  await harness.time.advance(2 * minute);
  expect(harness.store.preload.progress()).toEqual({ done: 120, failed: 0, left: 0 });
  // Look-ups that were in flight at the crash are sent again.
  expect(harness.vendor.asked.length).toBeLessThan(120 + 55);
});

test('preloading waits while the upstream is down, and continues when it is back', async () => {
  using harness = await startSyncHarness(['A']);
  harness.vendor.instead = () => unreachable;
  await preload(harness, ['A']);
  await harness.time.advance(minute);
  expect(harness.store.preload.progress().left).toBe(1);
  harness.vendor.instead = () => null;
  await harness.time.advance(2 * minute);
  expect([harness.store.preload.progress().left, isKnown(harness, 'A')]).toEqual([0, true]);
});

test('preloading continues seconds after the upstream is back, however long it was down', async () => {
  using harness = await startSyncHarness(['A']);
  harness.vendor.instead = () => unreachable;
  await preload(harness, ['A']);
  await harness.time.advance(60 * minute);
  harness.vendor.instead = () => null;
  await harness.time.runUntil(() => harness.sync.limiter.admission().admitted, 10 * minute);
  await harness.time.advance(6 * second);
  expect(isKnown(harness, 'A')).toBe(true);
});

test('preloading continues at once after a pause', async () => {
  using harness = await startSyncHarness(['A']);
  const control = syncControl({ reader: harness.store, writer: harness.writer }, harness.sync);
  await control.pause(byNobody);
  await preload(harness, ['A']);
  await harness.time.advance(minute + second);
  await control.resume(byNobody);
  await harness.time.advance(second);
  expect(isKnown(harness, 'A')).toBe(true);
});

test('preloading does not wait for its next turn after sync now', async () => {
  using harness = await startSyncHarness(['A']);
  const control = syncControl({ reader: harness.store, writer: harness.writer }, harness.sync);
  harness.vendor.instead = () => throttled;
  await preload(harness, ['A']);
  await harness.time.advance(10 * minute);
  harness.vendor.instead = () => null;
  await control.now(byNobody);
  await harness.time.advance(second);
  expect(isKnown(harness, 'A')).toBe(true);
});

test('preloading is not delayed by keys that the upstream cannot answer', async () => {
  const bad = Array.from({ length: 60 }, (_, index) => `BAD-${index}`);
  using harness = await startSyncHarness([...bad, 'GOOD'], { rate: 100 });
  const broken: Outcome<never> = {
    outcome: 'ambiguous',
    status: 500,
    detail: 'HTTP 500',
    retryAfterMs: null,
  };
  harness.vendor.instead = (_, key) => (key.startsWith('BAD') ? broken : null);
  await preload(harness, [...bad, 'GOOD']);
  await harness.time.advance(10 * minute);
  expect([harness.store.preload.progress().left, isKnown(harness, 'GOOD')]).toEqual([60, true]);
});

test('preloading is not delayed by a product whose secret is rejected', async () => {
  using harness = await startSyncHarness(['A'], { productIds: ['brush', 'press'] });
  const verify = harness.vendor.verify.bind(harness.vendor);
  const unauthorized: Outcome<never> = { ...unreachable, reason: 'unauthorized', status: 401 };
  vi.spyOn(harness.vendor, 'verify').mockImplementation(async (productKey, key) =>
    productKey === 'brush' ? unauthorized : await verify(productKey, key),
  );
  await preload(harness, ['A', 'OF-BRUSH']);
  await harness.time.advance(minute);
  // The other key may or may not belong to that product.
  expect([harness.store.preload.progress(), isKnown(harness, 'A')]).toEqual([
    { done: 1, failed: 0, left: 1 },
    true,
  ]);
});

test('the progress of preloading restarts with the first keys after all are fetched', async () => {
  using harness = await startSyncHarness(['A', 'B']);
  await preload(harness, ['A']);
  await harness.time.advance(10 * second);
  await preload(harness, ['B', 'A']);
  await harness.time.advance(10 * second);
  expect(harness.store.preload.progress()).toEqual({ done: 2, failed: 0, left: 0 });
});

test('too many keys for preloading are refused, and none of them is queued', async () => {
  using harness = await startSyncHarness([]);
  harness.sync.limiter.pause();
  const keys = (count: number): string[] => Array.from({ length: count }, (_, index) => `${count}-${index}`);
  await preload(harness, keys(99_999));
  const refused = await harness.writer.write('queuePreload', { licenseKeys: keys(2), productKey: null });
  expect(refused).toMatchObject({ ok: false, problem: { code: 'storage_full' } });
  expect(harness.store.preload.progress().left).toBe(99_999);
});

test('a full disk does not end preloading, and results are stored when there is room again', async () => {
  using harness = await startSyncHarness(['A']);
  const { writer } = harness;
  const write = writer.write.bind(writer);
  let isFull = true;
  writer.write = (name, ...rest) =>
    isFull && name === 'recordPreload'
      ? Promise.reject(new StorageError('full', null))
      : write(name, ...rest);
  await preload(harness, ['A']);
  await harness.time.advance(10 * second);
  expect(harness.store.preload.progress().left).toBe(1);
  isFull = false;
  await harness.time.advance(10 * second);
  expect(harness.store.preload.progress()).toEqual({ done: 1, failed: 0, left: 0 });
});
