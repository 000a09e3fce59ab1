import { expect, test } from 'vitest';
import { runMaintenance } from '../../src/daemon/maintenance.ts';
import { PersistentClock } from '../../src/daemon/system/clock.ts';
import { sha256, systemRandom } from '../../src/daemon/system/machine.ts';
import { TokenUses } from '../../src/service/access/credential.ts';
import { isFailure } from '../../src/domain/problem/problem.ts';
import { runUseCase } from '../../src/service/run.ts';
import type { Writer } from '../../src/service/writer.ts';
import { localWriter } from '../../src/store/sqlite/commit.ts';
import {
  account,
  buildLicense,
  createTestStore,
  product,
  type TestStore,
} from '../support/builders/store-builders.ts';

const hour = 3_600_000;
const noon = Date.UTC(2026, 0, 1, 12);

/** The parts of maintenance on a store, with a clock that stands still. */
function houseOver(store: TestStore, at: number, sleep: () => Promise<void>) {
  const clock = new PersistentClock(null, { read: () => ({ wall: at, monotonic: 0 }), sleep });
  const context = { now: at, monotonic: 0, recordsHistory: true, random: systemRandom, digest: sha256 };
  const writer = localWriter(store.writing, { run: runUseCase, isFailure, context: () => context });
  const nothing = {
    role: 'agent',
    syncKeepMs: () => 30 * 24 * hour,
    historyKeepMs: () => 0,
    prunes: [],
    lastSuccessAt: () => null,
    onSleep: () => undefined,
    checkStoreFile: () => undefined,
    checkListeners: () => Promise.resolve(),
  } as const;
  return { writer, clock, random: systemRandom, tokenUses: new TokenUses(), ...nothing };
}

test('Maintenance removes expired rows in small commits until none is left.', async () => {
  await using store = createTestStore();
  const { transaction, database } = store.writing;
  const year = 365 * 24 * 3_600_000;
  const answer = { fingerprint: 'f', value: { ok: true, value: null }, unchanged: false };
  for (let number = 0; number < 1_203; number += 1) {
    transaction.idempotency.put('c', `old-${number}`, { ...answer, until: number });
  }
  transaction.idempotency.put('c', 'new', { ...answer, until: year });
  const ending = new AbortController();
  const house = houseOver(store, year, async () => ending.abort());
  const left = database.prepare('SELECT count(*) AS count FROM idempotency');
  const leftAfter: unknown[] = [];
  const writer: Writer = {
    write(name, ...rest) {
      const written = house.writer.write(name, ...rest);
      if (name === 'pruneIdempotency') void written.then(() => leftAfter.push(left.get()?.['count']));
      return written;
    },
  };
  await runMaintenance({ ...house, writer }, ending.signal);
  expect(leftAfter).toEqual([704, 204, 1]);
});

test('After a reload with a shorter history.keep, maintenance removes old changes at once.', async () => {
  await using store = createTestStore();
  const { history } = store.writing.transaction;
  const state = { uses: 0, enabled: true };
  const change = { change: 'usage', credential: 'product:press', before: state, after: state } as const;
  history.add({ ...change, licenseKey: 'KEY', at: noon });
  const ending = new AbortController();
  const keptAtRests: number[] = [];
  let historyKeepMs = hour;
  const house = houseOver(store, noon + 1, async () => {
    keptAtRests.push(history.count('KEY'));
    historyKeepMs = 0;
    if (keptAtRests.length === 2) ending.abort();
  });
  await runMaintenance({ ...house, historyKeepMs: () => historyKeepMs }, ending.signal);
  expect(keptAtRests).toEqual([1, 0]);
});

test('A single Date of the upstream that is days ahead does not remove stored responses.', async () => {
  await using store = createTestStore();
  const { idempotency } = store.writing.transaction;
  const answer = { fingerprint: 'f', value: { ok: true, value: null }, unchanged: false };
  idempotency.put('c', 'yesterday', { ...answer, until: noon + 7 * 24 * hour });
  const ending = new AbortController();
  const house = houseOver(store, noon, async () => ending.abort());
  house.clock.learn(noon + 20 * 24 * hour);
  house.clock.learn(noon);
  await runMaintenance(house, ending.signal);
  expect(idempotency.get('c', 'yesterday')).not.toBeNull();
});

test('A clock that was days behind and is corrected does not remove stored responses.', async () => {
  await using store = createTestStore();
  const { idempotency } = store.writing.transaction;
  const ending = new AbortController();
  let wall = noon - 20 * 24 * hour;
  // After a jump of the clock, maintenance makes one more, shorter pause before it removes anything.
  const sleep = async (ms: number): Promise<void> => {
    if (ms >= 10_000) ending.abort();
  };
  const clock = new PersistentClock(null, { read: () => ({ wall, monotonic: 0 }), sleep });
  const answer = { fingerprint: 'f', value: { ok: true, value: null }, unchanged: false };
  idempotency.put('c', 'just now', { ...answer, until: clock.now() + 8 * 24 * hour });
  wall = noon;
  clock.learn(noon);
  await runMaintenance({ ...houseOver(store, noon, async () => undefined), clock }, ending.signal);
  expect(idempotency.get('c', 'just now')).not.toBeNull();
});

test('A clock that was weeks ahead and is corrected does not remove answers to agents.', async () => {
  await using store = createTestStore();
  const { idempotency, settings } = store.writing.transaction;
  const day = 24 * hour;
  const answer = { fingerprint: 'f', value: 1, unchanged: false };
  idempotency.put('~tenant', 'operation', { ...answer, until: noon + 25 * day });
  const ending = new AbortController();
  let wall = noon + 29 * day;
  const sleep = async (ms: number): Promise<void> => {
    if (ms >= 10_000) ending.abort();
  };
  const clock = new PersistentClock(null, { read: () => ({ wall, monotonic: 0 }), sleep });
  clock.now();
  wall = noon;
  const house = houseOver(store, noon, async () => undefined);
  await runMaintenance({ ...house, clock, role: 'authority' }, ending.signal);
  expect(idempotency.get('~tenant', 'operation')).not.toBeNull();
  expect(settings.get('keyed_answers_pruned')).toBeNull();
});

test('Maintenance checks the listeners once a minute.', async () => {
  await using store = createTestStore();
  const ending = new AbortController();
  let rests = 0;
  let looks = 0;
  const house = houseOver(store, noon, async () => {
    rests += 1;
    if (rests === 13) ending.abort();
  });
  const checkListeners = async (): Promise<void> => {
    looks += 1;
  };
  await runMaintenance({ ...house, checkListeners }, ending.signal);
  // Each pause takes ten seconds, and the first check is a minute after the start.
  expect(looks).toBe(2);
});

test('Maintenance of an authority sets the graces of licenses, and goes on where it was stopped.', async () => {
  await using store = createTestStore();
  const { accounts, products, licenses } = store.writing.transaction;
  accounts.add(account, 'digest');
  products.add({ ...product, licenseTerms: { ...product.licenseTerms, expiryGraceMs: hour } }, 'digest');
  for (let number = 0; number < 1_203; number += 1)
    licenses.add(buildLicense({ licenseKey: `KEY-${1_000 + number}`, expiresAt: noon }));
  products.setGracedTo('press', '');
  const steps = async (most: number): Promise<number> => {
    const ending = new AbortController();
    let count = 0;
    const house = houseOver(store, noon, async () => ending.abort());
    const writer: Writer = {
      write(name, ...rest) {
        if (name === 'spreadGrace') count += 1;
        if (count === most) ending.abort();
        return house.writer.write(name, ...rest);
      },
    };
    await runMaintenance({ ...house, writer, role: 'authority' }, ending.signal);
    return count;
  };
  expect(await steps(1)).toBe(1);
  expect(licenses.get('KEY-1499')).toMatchObject({ graceUntil: noon + hour, revision: 1 });
  expect(licenses.get('KEY-1500')).toMatchObject({ graceUntil: null, revision: 0 });
  // The last of them finds nothing to do.
  expect(await steps(9)).toBe(3);
  expect(licenses.get('KEY-2202')).toMatchObject({ graceUntil: noon + hour, revision: 1 });
});
