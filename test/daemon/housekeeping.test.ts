import { expect, test } from 'vitest';
import { runHousekeeping } from '../../src/daemon/housekeeping.ts';
import { KeptClock } from '../../src/daemon/system/clock.ts';
import { sha256, systemRandom } from '../../src/daemon/system/random.ts';
import { TokenUses } from '../../src/service/access/token-use.ts';
import { isRefusal } from '../../src/service/access/idempotency.ts';
import { runUseCase } from '../../src/service/run.ts';
import type { Writer } from '../../src/service/writer.ts';
import { localWriter } from '../../src/store/sqlite/local-writer.ts';
import { givenStore } from '../support/store-given.ts';

test('what is no longer kept is removed in small commits, until nothing of it is left', async () => {
  await using store = givenStore();
  const { transaction, database } = store.writing;
  const year = 365 * 24 * 3_600_000;
  const answer = { fingerprint: 'f', value: { ok: true, value: null }, unchanged: false };
  for (let number = 0; number < 1_203; number += 1) {
    transaction.idempotency.put('c', `old-${number}`, { ...answer, at: number });
  }
  transaction.idempotency.put('c', 'new', { ...answer, at: year });
  const clock = new KeptClock(null, {
    read: () => ({ wall: year, monotonic: 0 }),
    sleep: async () => ending.abort(),
  });
  const ending = new AbortController();
  const context = { now: year, steady: 0, keepsHistory: true, random: systemRandom, digest: sha256 };
  const local = localWriter(store.writing, { run: runUseCase, isRefusal, context: () => context });
  const left = database.prepare('SELECT count(*) AS count FROM idempotency');
  const leftAfter: unknown[] = [];
  const writer: Writer = {
    write(name, ...rest) {
      const written = local.write(name, ...rest);
      if (name === 'pruneIdempotency') void written.then(() => leftAfter.push(left.get()?.['count']));
      return written;
    },
  };
  const parts = { writer, clock, random: systemRandom, tokenUses: new TokenUses(), isAgent: true };
  const nothing = { historyKeepMs: () => 0, lastSuccessAt: () => null, onSleep: () => undefined };
  await runHousekeeping({ ...parts, ...nothing }, ending.signal);
  expect(leftAfter).toEqual([704, 204, 1]);
});
