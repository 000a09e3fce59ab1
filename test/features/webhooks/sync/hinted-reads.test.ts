import { expect, test } from 'vitest';
import { notApplied, type Outcome } from '../../../../src/domain/outbox/outcome.ts';
import type { License } from '../../../../src/domain/license.ts';
import { HintedReads, hintRate } from '../../../../src/features/webhooks/sync/hinted-reads.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { buildLicense } from '../../../support/builders/store-builders.ts';

const product = 'press';
const minute = 60_000;
const value = buildLicense({ licenseKey: 'A' });
const applied: Outcome<License> = { outcome: 'applied', value, confirmedAt: 0, isCached: false };

type Started = {
  time: VirtualTime;
  reads: HintedReads;
  /** The reads, with the ms since the start. */
  log: string[];
  /** The keys whose refresh was made due. */
  hastened: string[];
  ending: AbortController;
  done: Promise<void>;
  /** The next responses; then `applied`. */
  responses: Outcome<License>[];
};

function start(perSecond = 1): Started {
  const time = new VirtualTime();
  const log: string[] = [];
  const hastened: string[] = [];
  const responses: Outcome<License>[] = [];
  const ending = new AbortController();
  const clock = time.clock();
  const reads = new HintedReads({
    clock,
    fetcher: {
      fetch: async (_, licenseKey, priority, requester) => {
        log.push(`${time.monotonic} ${licenseKey} ${priority} ${requester}`);
        await clock.sleep(20, ending.signal).catch(() => undefined);
        return responses.shift() ?? applied;
      },
    },
    hastenRefresh: async (licenseKey) => hastened.push(licenseKey),
    rate: () => ({ perSecond, burst: 5 * perSecond }),
  });
  return { time, reads, log, hastened, ending, done: reads.run(ending.signal), responses };
}

test('a hint reads a license key at once, after 30 seconds and after 5 minutes, with the priority of a refresh', async () => {
  const { time, reads, log } = start();
  await time.advance(1_000);
  expect(reads.add(product, 'A')).toBe(true);
  await time.advance(10 * minute);
  expect(log).toEqual(['1000 A refresh webhooks', '31000 A refresh webhooks', '301000 A refresh webhooks']);
  expect(reads.waiting).toBe(0);
});

test('a repeated hint reads the same key again at once, but at most every 10 seconds', async () => {
  const { time, reads, log } = start();
  for (let count = 0; count < 1_000; count += 1) reads.add(product, 'A');
  await time.advance(2_000);
  for (let count = 0; count < 1_000; count += 1) reads.add(product, 'A');
  await time.advance(18_000);
  expect(reads.waiting).toBe(1);
  expect(log.map((line) => Number.parseInt(line, 10))).toEqual([0, 10_000]);
});

test('a hint during the read of the same key causes another read 10 seconds after its start, since the response may be older than the hint', async () => {
  const { time, reads, log } = start();
  reads.add(product, 'A');
  await time.advance(10);
  reads.add(product, 'A');
  await time.advance(15_000);
  expect(log.map((line) => Number.parseInt(line, 10))).toEqual([0, 10_000]);
});

test('hints about 10,000 keys keep their rate, and the next is refused', async () => {
  const { time, reads, log } = start();
  for (let count = 0; count < 10_000; count += 1) expect(reads.add(product, `KEY-${count}`)).toBe(true);
  expect(reads.add(product, 'ONE-MORE')).toBe(false);
  await time.advance(minute);
  expect(log.length).toBeGreaterThan(55);
  expect(log.length).toBeLessThanOrEqual(65);
});

const unanswered: readonly [title: string, outcome: Outcome<License>][] = [
  ['could not be sent', notApplied('unreachable', 'away')],
  ['was answered 503', { outcome: 'ambiguous', status: 503, detail: 'HTTP 503', retryAfterMs: null }],
  ['was answered 429', { ...notApplied('throttled', 'HTTP 429'), status: 429 }],
  ['was answered by a cache', { ...applied, isCached: true }],
];

test.each(unanswered)('a read that %s is repeated every 30 seconds for an hour', async (_, outcome) => {
  const { time, reads, log, responses } = start();
  responses.push(...Array.from({ length: 200 }, () => outcome));
  reads.add(product, 'A');
  await time.advance(180 * minute);
  const last = Number.parseInt(log.at(-1) ?? '', 10);
  expect(log.length).toBeGreaterThan(100);
  expect(last).toBeGreaterThan(59 * minute);
  expect(last).toBeLessThan(61 * minute);
  expect(reads.waiting).toBe(0);
});

test('only a read without an answer makes the refresh of its key due', async () => {
  const { time, reads, hastened, responses } = start();
  responses.push(notApplied('unreachable', 'away'));
  reads.add(product, 'A');
  await time.advance(10 * minute);
  expect(hastened).toEqual(['A']);
});

test('the read of a key is made up for when the upstream can be reached again', async () => {
  const { time, reads, log, responses } = start();
  responses.push(notApplied('unreachable', 'away'));
  reads.add(product, 'A');
  await time.advance(minute);
  expect(log.map((line) => Number.parseInt(line, 10))).toEqual([0, 30_020]);
});

test('the loop ends with the signal, after the reads under way', async () => {
  const { time, reads, ending, done, log } = start();
  reads.add(product, 'A');
  await time.settle();
  ending.abort();
  await done;
  expect(log).toHaveLength(1);
});

test.each([
  [5, 2, 1],
  [5, 100, 1.25],
  [100, 2, 1],
  [0.4, 2, 0.1],
])(
  'with sync.rate %d and limits.misses %d, hints cause at most %d reads a second',
  (rate, perSecond, share) => {
    const hinted = hintRate({ rate, lookups: { perSecond, maxWaiting: 1 } });
    expect(hinted).toEqual({ perSecond: share, burst: Math.max(1, 5 * share) });
  },
);
