import { expect, test } from 'vitest';
import { RecentReads } from '../../src/daemon/role/node.ts';

function createReads() {
  const clock = { at: 0, now: () => clock.at, elapsed: () => clock.at };
  const state = { clock, stored: 'old' as string | null, reads: 0 };
  const recent = new RecentReads<string>(clock);
  const read = (name = 'name'): Promise<string | null> =>
    recent.read(name, () => {
      state.reads += 1;
      return Promise.resolve(state.stored);
    });
  return Object.assign(state, { recent, read });
}

test('what was read is given for a second from when its read began, and then read again', async () => {
  const given = createReads();
  expect(await given.read()).toBe('old');
  given.stored = 'new';
  given.clock.at = 999;
  expect(await given.read()).toBe('old');
  given.clock.at = 1_000;
  expect(await given.read()).toBe('new');
});

test('those who ask at the same time share one read, and nobody shares one that began before it was forgotten', async () => {
  const given = createReads();
  const answer = Promise.withResolvers<string>();
  const slow = given.recent.read('name', () => answer.promise);
  const shared = given.read();
  expect(given.reads).toBe(0);
  given.recent.forget();
  given.stored = 'new';
  expect(await given.read()).toBe('new');
  answer.resolve('old');
  expect(await Promise.all([slow, shared])).toEqual(['old', 'old']);
  expect(await given.read()).toBe('new');
});

test('neither that there is nothing nor that it could not be read is remembered', async () => {
  const given = createReads();
  given.stored = null;
  expect(await given.read()).toBeNull();
  const away = given.recent.read('name', () => Promise.reject(new Error('away')));
  await expect(away).rejects.toThrow('away');
  given.stored = 'new';
  expect(await given.read()).toBe('new');
});

test('no more is remembered than may be asked for in a second', async () => {
  const given = createReads();
  for (let name = 0; name <= 10_000; name += 1) await given.read(`${name}`);
  given.reads = 0;
  await given.read('10000');
  expect(given.reads).toBe(0);
  await given.read('0');
  expect(given.reads).toBe(1);
});
