import { expect, test } from 'vitest';
import { RecentReads } from '../../../../src/features/postgres/daemon/node-cache.ts';

function createRecentReads() {
  const clock = { at: 0, now: () => clock.at, monotonic: () => clock.at };
  const state = { clock, stored: 'old' as string | null, count: 0 };
  const recent = new RecentReads<string>(clock);
  const read = (name = 'name'): Promise<string | null> =>
    recent.read(name, () => {
      state.count += 1;
      return Promise.resolve(state.stored);
    });
  return Object.assign(state, { recent, read });
}

test('A read is cached for a second from its start, and then repeated.', async () => {
  const reads = createRecentReads();
  expect(await reads.read()).toBe('old');
  reads.stored = 'new';
  reads.clock.at = 999;
  expect(await reads.read()).toBe('old');
  reads.clock.at = 1_000;
  expect(await reads.read()).toBe('new');
});

test('Concurrent reads of the same name share one read, but not a read that began before the cache was cleared.', async () => {
  const reads = createRecentReads();
  const answer = Promise.withResolvers<string>();
  const slow = reads.recent.read('name', () => answer.promise);
  const shared = reads.read();
  expect(reads.count).toBe(0);
  reads.recent.clear();
  reads.stored = 'new';
  expect(await reads.read()).toBe('new');
  answer.resolve('old');
  expect(await Promise.all([slow, shared])).toEqual(['old', 'old']);
  expect(await reads.read()).toBe('new');
});

test('Neither null nor an error is cached.', async () => {
  const reads = createRecentReads();
  reads.stored = null;
  expect(await reads.read()).toBeNull();
  const away = reads.recent.read('name', () => Promise.reject(new Error('away')));
  await expect(away).rejects.toThrow('away');
  reads.stored = 'new';
  expect(await reads.read()).toBe('new');
});

test('The cache keeps at most 10,000 reads.', async () => {
  const reads = createRecentReads();
  for (let name = 0; name <= 10_000; name += 1) await reads.read(`${name}`);
  reads.count = 0;
  await reads.read('10000');
  expect(reads.count).toBe(0);
  await reads.read('0');
  expect(reads.count).toBe(1);
});
