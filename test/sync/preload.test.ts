import { expect, test, vi } from 'vitest';
import { syncControl } from '../../src/daemon/role/sync-control.ts';
import { StorageError } from '../../src/service/ports.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { minute, second, startSyncStage, type SyncStage } from '../support/stage/sync-stage.ts';

const unreachable: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unreachable',
  status: null,
  detail: 'away',
  retryAfterMs: null,
};

const throttled: Outcome<never> = { ...unreachable, reason: 'throttled', status: 429 };
const byNobody = { actor: null, requestId: null, idempotency: null };

async function preload(stage: SyncStage, licenseKeys: readonly string[]): Promise<void> {
  await stage.writer.write('queuePreload', { licenseKeys, productKey: null });
  stage.sync.wakePreload();
  await stage.time.settle();
}

const isKnown = (stage: SyncStage, key: string): boolean => stage.store.observations.get(key) !== null;

test('license keys that are fetched ahead are answered while the upstream is away', async () => {
  using stage = await startSyncStage(['A', 'B']);
  await preload(stage, ['A', 'UNKNOWN', 'B']);
  await stage.time.advance(10 * second);
  expect(stage.store.preload.progress()).toEqual({ done: 2, failed: 1, left: 0 });
  stage.vendor.instead = () => unreachable;
  expect((await stage.verify('A')).ok).toBe(true);
  expect((await stage.verify('B')).ok).toBe(true);
});

test('a license key that was pasted is fetched ahead as the key that the upstream has', async () => {
  using stage = await startSyncStage(['A-1', 'OLD–1']);
  await preload(stage, ['A–1\u200b', 'OLD–1']);
  await stage.time.advance(10 * second);
  expect(stage.store.preload.progress()).toEqual({ done: 2, failed: 0, left: 0 });
  expect([isKnown(stage, 'A-1'), isKnown(stage, 'OLD–1')]).toEqual([true, true]);
});

test('a license key that is given twice is queued, fetched and counted once', async () => {
  using stage = await startSyncStage(['A', 'B']);
  const command = { licenseKeys: ['A', 'A', 'B'], productKey: null };
  expect(await stage.writer.write('queuePreload', command)).toMatchObject({ value: { queued: 2 } });
  stage.sync.wakePreload();
  await stage.time.advance(10 * second);
  expect(stage.store.preload.progress()).toEqual({ done: 2, failed: 0, left: 0 });
});

test('fetching goes on after a restart, and asks for nothing twice', async () => {
  const keys = Array.from({ length: 120 }, (_, index) => `KEY-${index}`);
  using stage = await startSyncStage(keys);
  await preload(stage, keys);
  await stage.time.advance(15 * second);
  const { done, left } = stage.store.preload.progress();
  expect(done).toBeGreaterThan(0);
  expect(left).toBeGreaterThan(0);
  await stage.restart();
  await stage.time.advance(2 * minute);
  expect(stage.store.preload.progress()).toEqual({ done: 120, failed: 0, left: 0 });
  // Those that were under way when it died are asked for again.
  expect(stage.vendor.asked.length).toBeLessThan(120 + 55);
});

test('it waits while the upstream is away, and goes on when it is back', async () => {
  using stage = await startSyncStage(['A']);
  stage.vendor.instead = () => unreachable;
  await preload(stage, ['A']);
  await stage.time.advance(minute);
  expect(stage.store.preload.progress().left).toBe(1);
  stage.vendor.instead = () => null;
  await stage.time.advance(2 * minute);
  expect([stage.store.preload.progress().left, isKnown(stage, 'A')]).toEqual([0, true]);
});

test('however long the upstream was away, fetching goes on seconds after it is back', async () => {
  using stage = await startSyncStage(['A']);
  stage.vendor.instead = () => unreachable;
  await preload(stage, ['A']);
  await stage.time.advance(60 * minute);
  stage.vendor.instead = () => null;
  await stage.time.runUntil(() => stage.sync.uplink.admission().admitted, 10 * minute);
  await stage.time.advance(6 * second);
  expect(isKnown(stage, 'A')).toBe(true);
});

test('after a pause it goes on at once', async () => {
  using stage = await startSyncStage(['A']);
  const control = syncControl({ reader: stage.store, writer: stage.writer }, stage.sync);
  await control.pause(byNobody);
  await preload(stage, ['A']);
  await stage.time.advance(minute + second);
  await control.resume(byNobody);
  await stage.time.advance(second);
  expect(isKnown(stage, 'A')).toBe(true);
});

test('a person who asks for it now need not wait for the next turn', async () => {
  using stage = await startSyncStage(['A']);
  const control = syncControl({ reader: stage.store, writer: stage.writer }, stage.sync);
  stage.vendor.instead = () => throttled;
  await preload(stage, ['A']);
  await stage.time.advance(10 * minute);
  stage.vendor.instead = () => null;
  await control.now(byNobody);
  await stage.time.advance(second);
  expect(isKnown(stage, 'A')).toBe(true);
});

test('keys that the upstream cannot answer for do not keep the others waiting', async () => {
  const bad = Array.from({ length: 60 }, (_, index) => `BAD-${index}`);
  using stage = await startSyncStage([...bad, 'GOOD'], { rate: 100 });
  const broken: Outcome<never> = {
    outcome: 'ambiguous',
    status: 500,
    detail: 'HTTP 500',
    retryAfterMs: null,
  };
  stage.vendor.instead = (_, key) => (key.startsWith('BAD') ? broken : null);
  await preload(stage, [...bad, 'GOOD']);
  await stage.time.advance(10 * minute);
  expect([stage.store.preload.progress().left, isKnown(stage, 'GOOD')]).toEqual([60, true]);
});

test('a product whose secret is refused keeps no key of another waiting', async () => {
  using stage = await startSyncStage(['A'], { productIds: ['brush', 'press'] });
  const verify = stage.vendor.verify.bind(stage.vendor);
  const unauthorized: Outcome<never> = { ...unreachable, reason: 'unauthorized', status: 401 };
  vi.spyOn(stage.vendor, 'verify').mockImplementation(async (productKey, key) =>
    productKey === 'brush' ? unauthorized : await verify(productKey, key),
  );
  await preload(stage, ['A', 'OF-BRUSH']);
  await stage.time.advance(minute);
  // Nobody can tell whether the other one is a key of that product.
  expect([stage.store.preload.progress(), isKnown(stage, 'A')]).toEqual([
    { done: 1, failed: 0, left: 1 },
    true,
  ]);
});

test('the counts begin anew with the first keys after all are fetched', async () => {
  using stage = await startSyncStage(['A', 'B']);
  await preload(stage, ['A']);
  await stage.time.advance(10 * second);
  await preload(stage, ['B', 'A']);
  await stage.time.advance(10 * second);
  expect(stage.store.preload.progress()).toEqual({ done: 2, failed: 0, left: 0 });
});

test('more keys than can be kept are refused, and nothing of them is queued', async () => {
  using stage = await startSyncStage([]);
  stage.sync.uplink.pause();
  const keys = (count: number): string[] => Array.from({ length: count }, (_, index) => `${count}-${index}`);
  await preload(stage, keys(99_999));
  const refused = await stage.writer.write('queuePreload', { licenseKeys: keys(2), productKey: null });
  expect(refused).toMatchObject({ ok: false, problem: { code: 'storage_full' } });
  expect(stage.store.preload.progress().left).toBe(99_999);
});

test('a full disk ends nothing: what was fetched is recorded when there is room again', async () => {
  using stage = await startSyncStage(['A']);
  const { writer } = stage;
  const write = writer.write.bind(writer);
  let isFull = true;
  writer.write = (name, ...rest) =>
    isFull && name === 'recordPreload'
      ? Promise.reject(new StorageError('full', null))
      : write(name, ...rest);
  await preload(stage, ['A']);
  await stage.time.advance(10 * second);
  expect(stage.store.preload.progress().left).toBe(1);
  isFull = false;
  await stage.time.advance(10 * second);
  expect(stage.store.preload.progress()).toEqual({ done: 1, failed: 0, left: 0 });
});
