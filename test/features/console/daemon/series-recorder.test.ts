import { expect, test } from 'vitest';
import {
  recordMinutes,
  type RecorderParts,
} from '../../../../src/features/console/daemon/series-recorder.ts';
import { sha256, systemRandom } from '../../../../src/daemon/system/machine.ts';
import type { Series, SeriesStep, UpstreamState } from '../../../../src/features/console/domain/series.ts';
import { isFailure } from '../../../../src/domain/problem/problem.ts';
import { StorageError } from '../../../../src/service/ports.ts';
import { loadUseCases, runUseCase } from '../../../../src/service/run.ts';
import { pruneSeries, readSeries } from '../../../../src/features/console/service/series.ts';
import type { Writer } from '../../../../src/service/writer.ts';
import { localWriter } from '../../../../src/store/sqlite/commit.ts';
import { createTestStore, type TestStore } from '../../../support/builders/store-builders.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const minute = 60_000;
// Virtual time does not wait for the file to be read.
await loadUseCases(['recordSeries']);
const noon = Date.UTC(2026, 0, 1, 12);

/** A daemon that records on a store, from 12:00:20. `now` is what a test changes. */
function recorderOn(store: TestStore) {
  const time = new VirtualTime();
  const clock = time.clock({ wall: noon + 20_000 });
  const now = {
    totals: { verifies: 0, uses: 0 },
    outbox: { pending: 0, oldestAt: null as number | null },
    upstream: 'up' as UpstreamState,
    refuses: false,
  };
  const context = { now: noon, monotonic: 0, recordsHistory: true, random: systemRandom, digest: sha256 };
  const local = localWriter(store.writing, { run: runUseCase, isFailure, context: () => context });
  const writer: Writer = {
    write: (...args) =>
      now.refuses ? Promise.reject(new StorageError('full', new Error('no space'))) : local.write(...args),
  };
  const parts: RecorderParts = {
    writer,
    clock,
    totals: () => ({ ...now.totals }),
    outbox: () => now.outbox,
    upstream: () => now.upstream,
  };
  let ending = new AbortController();
  let running = Promise.resolve();
  return {
    now,
    time,
    clock,
    start: () => {
      ending = new AbortController();
      running = recordMinutes(parts, ending.signal);
    },
    stop: async () => {
      ending.abort();
      await running;
    },
    series: (stepS: SeriesStep): Promise<Series> => readSeries(store.writing.transaction, stepS, clock.now()),
  };
}

test('Each minute has its own counts, the outbox at its end, and the worst state of the upstream in it.', async () => {
  await using store = createTestStore();
  const { now, time, start, stop, series } = recorderOn(store);
  start();
  await time.advance(15_000);
  now.totals = { verifies: 7, uses: 2 };
  now.upstream = 'down';
  await time.advance(10_000);
  now.upstream = 'up';
  now.outbox = { pending: 4, oldestAt: noon + 50_000 };
  // 12:01:00
  await time.advance(15_000);
  now.totals = { verifies: 8, uses: 2 };
  await time.advance(minute + 5_000);
  await stop();
  const { start: first, steps } = await series(60);
  expect(first).toBe(noon + 2 * minute - 86_400_000);
  expect(steps).toHaveLength(1_440);
  expect(steps.slice(-3)).toEqual([
    null,
    expect.objectContaining({ verifies: 7, uses: 2, pending: 4, oldestAgeS: 10, upstream: 'down' }),
    expect.objectContaining({ verifies: 1, uses: 0, pending: 4, oldestAgeS: 70, upstream: 'up' }),
  ]);
});

test('A start within the minute of the stop goes on with that minute, and the time between is left out.', async () => {
  await using store = createTestStore();
  const { now, time, start, stop, series } = recorderOn(store);
  start();
  now.totals = { verifies: 3, uses: 0 };
  await time.advance(10_000);
  await stop();
  now.totals = { verifies: 0, uses: 0 };
  start();
  now.totals = { verifies: 4, uses: 1 };
  await time.advance(40_000);
  await stop();
  await time.advance(3 * minute);
  start();
  await time.advance(5 * minute);
  await stop();
  const { steps } = await series(60);
  expect(steps.slice(-10).map((step) => step?.verifies ?? null)).toEqual([
    null,
    7,
    0,
    null,
    null,
    0,
    0,
    0,
    0,
    0,
  ]);
  const tens = await series(600);
  // The ten minutes from 12:00 have not ended.
  expect(tens.steps.at(-1)).toBeNull();
  await time.advance(2 * minute);
  expect((await series(600)).steps.at(-1)).toMatchObject({ verifies: 7, uses: 1, upstream: 'up' });
});

test('A minute that the store refuses is left out, and recording goes on.', async () => {
  await using store = createTestStore();
  const { now, time, start, stop, series } = recorderOn(store);
  start();
  now.totals = { verifies: 5, uses: 0 };
  now.refuses = true;
  await time.advance(40_000);
  now.refuses = false;
  now.totals = { verifies: 6, uses: 0 };
  await time.advance(minute + 5_000);
  await stop();
  expect((await series(60)).steps.slice(-2).map((step) => step?.verifies ?? null)).toEqual([null, 1]);
});

test('A minute in which the wall clock is set back is recorded once, in its own step.', async () => {
  await using store = createTestStore();
  const { now, time, clock, start, stop, series } = recorderOn(store);
  start();
  now.totals = { verifies: 5, uses: 0 };
  clock.jumpWall(-minute);
  await time.advance(minute + 45_000);
  await stop();
  const counts = (await series(60)).steps.map((step) => step?.verifies ?? 0);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(5);
});

test('A month of series takes less than 2 MB, and a wrong clock removes nothing of it.', async () => {
  await using store = createTestStore();
  const { transaction, database } = store.writing;
  const sizeOf = (): number =>
    Number(
      database
        .prepare('SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size')
        .get()?.['size'],
    );
  const before = sizeOf();
  const values = {
    verifies: 123_456,
    uses: 12_345,
    pending: 1_000,
    oldestAgeS: 100_000,
    upstream: 'paused',
  } as const;
  const fill = (stepS: SeriesStep, count: number): void => {
    for (let index = 0; index < count; index += 1) {
      transaction.series.add({ ...values, stepS, at: noon - index * stepS * 1000 });
    }
  };
  fill(60, 1_500);
  fill(600, 4_400);
  transaction.series.add({ ...values, stepS: 60, at: noon + 40 * 86_400_000 });
  expect(sizeOf() - before).toBeLessThan(2_000_000);
  const rows = database.prepare('SELECT count(*) AS count FROM series');
  const day = 86_400_000;
  await pruneSeries(transaction, { now: noon + 50 * day, verifiedNow: noon });
  expect(rows.get()?.['count']).toBe(1_441 + 4_321 + 1);
  await pruneSeries(transaction, { now: noon, verifiedNow: noon });
  expect(rows.get()?.['count']).toBe(1_441 + 4_321);
});
