import { describe, expect, it } from 'vitest';
import { maxAliases } from '../../src/domain/license.ts';
import type { Result } from '../../src/domain/problem/problem.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import type { LicenseResponse } from '../../src/service/services.ts';
import { minute, second, startSyncHarness, type SyncHarness } from '../support/harness/sync-harness.ts';

/*
 * Look-ups of license keys that are not known here. The harness has the default of `limits.misses`: two a second, and
 * twenty at once.
 */

const unreachable: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unreachable',
  status: null,
  detail: 'connection refused',
  retryAfterMs: null,
};
const products = Array.from({ length: 60 }, (_, index) => `product-${index}`);

function keys(name: string, length: number): string[] {
  return Array.from({ length }, (_, index) => `${name}-${index}`);
}

function codeOf(answer: Result<LicenseResponse>): string {
  return answer.ok ? 'ok' : answer.problem.code;
}

/** The responses for these keys so far, in order. */
function ask(
  harness: SyncHarness,
  licenseKeys: readonly string[],
  requester = 'till',
  { signal, connection }: { signal?: AbortSignal; connection?: string } = {},
) {
  const answered: { licenseKey: string; code: string; afterMs: number }[] = [];
  const startedAt = harness.time.monotonic;
  const follow = async (licenseKey: string): Promise<void> => {
    try {
      const answer = await harness.ask(licenseKey, requester, signal, connection);
      answered.push({ licenseKey, code: codeOf(answer), afterMs: harness.time.monotonic - startedAt });
    } catch {
      // The caller has left.
    }
  };
  for (const licenseKey of licenseKeys) void follow(licenseKey);
  return answered;
}

function count(answered: readonly { code: string }[], code: string): number {
  return answered.filter((answer) => answer.code === code).length;
}

function askedUpstream(harness: SyncHarness, name: string): number {
  return harness.vendor.asked.filter((asked) => asked.includes(name)).length;
}

/** Guesses endlessly over this many connections, and waits a second after each refusal, as `Retry-After` says. */
function guess(harness: SyncHarness, atOnce: number): void {
  const clock = harness.time.clock();
  let guesses = 0;
  const next = async (connection: string): Promise<void> => {
    guesses += 1;
    const answer = await harness.ask(`GUESS-${guesses}`, 'till', undefined, connection);
    await clock.sleep(codeOf(answer) === 'rate_limited' ? second : 10, new AbortController().signal);
    void next(connection);
  };
  for (let index = 0; index < atOnce; index += 1) void next(`guesser ${index}`);
}

describe('a look-up of an unknown license key', () => {
  it('87 new valid keys that are requested at once are found as fast as sync.rate allows', async () => {
    const licenseKeys = keys('NEW', 87);
    using harness = await startSyncHarness(licenseKeys);
    const answered = ask(harness, licenseKeys);
    await harness.time.advance(second);
    // A burst of two seconds, and the turns since.
    expect(harness.vendor.asked.length).toBeLessThanOrEqual(15);
    await harness.time.advance(20 * second);
    expect(count(answered, 'ok')).toBe(87);
  });

  it('look-ups wait for their turn, so that guesses sent all at once gain nothing', async () => {
    using harness = await startSyncHarness([]);
    const answered = ask(harness, keys('GUESS', 100));
    await harness.time.advance(10 * second);
    expect(askedUpstream(harness, 'GUESS')).toBe(40);
    await harness.time.advance(minute);
    expect(count(answered, 'license_not_found')).toBe(80);
    expect(count(answered, 'rate_limited')).toBe(20);
  });

  it('a look-up waits for 30 s at most', async () => {
    using harness = await startSyncHarness([]);
    const answered = ask(harness, keys('GUESS', 100));
    await harness.time.advance(29.9 * second);
    expect(count(answered, 'rate_limited')).toBe(0);
    await harness.time.advance(0.2 * second);
    expect(answered.filter(({ code }) => code === 'rate_limited').map(({ afterMs }) => afterMs)).toEqual(
      Array.from({ length: 20 }, () => 30 * second),
    );
  });

  it('a look-up of a key that is remembered as unknown costs no turn', async () => {
    using harness = await startSyncHarness([]);
    await harness.verify('REMEMBERED', 'till');
    ask(harness, keys('GUESS', 60));
    await harness.time.advance(second);
    const answered = ask(harness, ['REMEMBERED']);
    await harness.time.advance(0);
    expect(answered).toMatchObject([{ code: 'license_not_found', afterMs: 0 }]);
  });

  it('a look-up of a key that exists costs no turn, even if its caller leaves before the response', async () => {
    const licenseKeys = keys('NEW', 20);
    using harness = await startSyncHarness(licenseKeys, { rate: 100 });
    const leaving = new AbortController();
    ask(harness, licenseKeys, 'till', { signal: leaving.signal });
    await harness.time.advance(10);
    expect(harness.vendor.asked.length).toBe(20);
    leaving.abort(new Error('the caller left'));
    await harness.time.advance(100);
    const answered = ask(harness, keys('GUESS', 21));
    await harness.time.advance(100);
    expect(count(answered, 'license_not_found')).toBe(20);
  });

  it('a look-up costs one turn for each product that is asked', async () => {
    using harness = await startSyncHarness([], { productIds: products, rate: 100 });
    await harness.verify('GUESS', 'till');
    expect(harness.vendor.asked.length).toBe(60);
    const answered = ask(harness, ['GUESS-2', 'GUESS-3']);
    // 60 were sent where 20 were allowed: the next turn is 20 s away.
    await harness.time.advance(18 * second);
    expect(harness.vendor.asked.length).toBe(60);
    await harness.time.advance(5 * second);
    expect(harness.vendor.asked.length).toBe(120);
    await harness.time.advance(10 * second);
    expect(answered.map(({ code }) => code)).toEqual(['license_not_found', 'rate_limited']);
  });

  it('a look-up costs turns only for the products that were asked if one of the first has the key', async () => {
    using harness = await startSyncHarness(['NEW'], { productIds: products, rate: 100 });
    expect(await harness.verify('NEW', 'till')).toMatchObject({ ok: true });
    ask(harness, ['GUESS']);
    await harness.time.advance(3 * second);
    expect(askedUpstream(harness, 'GUESS')).toBe(60);
  });

  it('a look-up costs no turn and no wait while the upstream is down', async () => {
    using harness = await startSyncHarness([]);
    ask(harness, keys('GUESS', 60));
    await harness.time.advance(second);
    harness.vendor.instead = () => unreachable;
    await harness.time.advance(30 * second);
    const asked = harness.vendor.asked.length;
    const answered = ask(harness, keys('KEY', 30));
    await harness.time.advance(100);
    expect(answered.map(({ code, afterMs }) => [code, afterMs])).toEqual(
      Array.from({ length: 30 }, () => ['upstream_unreachable', 0]),
    );
    expect(harness.vendor.asked.length).toBe(asked);
  });

  it('a look-up sends nothing before the Retry-After of the upstream has passed', async () => {
    using harness = await startSyncHarness(['NEW']);
    const answered = ask(harness, [...keys('GUESS', 40), 'NEW']);
    await harness.time.advance(second);
    harness.sync.limiter.waitUntil(harness.time.clock().monotonic() + 10 * second);
    const asked = harness.vendor.asked.length;
    await harness.time.advance(9 * second);
    expect(harness.vendor.asked.length).toBe(asked);
    expect(answered.length).toBe(41);
  });

  it('look-ups of one credential delay neither another credential nor known keys', async () => {
    using harness = await startSyncHarness(['KNOWN', 'NEW']);
    await harness.verify('KNOWN');
    ask(harness, keys('GUESS', 100), 'crawler');
    const before = harness.time.monotonic;
    expect(await harness.verify('NEW', 'till')).toMatchObject({ ok: true });
    expect(harness.time.monotonic - before).toBeLessThan(second);
    expect(await harness.verify('KNOWN', 'crawler')).toMatchObject({ ok: true });
  });

  it('a look-up is shared with callers who ask for the same key meanwhile, and counts once', async () => {
    using harness = await startSyncHarness([]);
    const answers = ['first', 'second', 'first'].map((requester) => ask(harness, ['GUESS'], requester));
    ask(harness, keys('MORE', 19), 'first');
    await harness.time.advance(5 * second);
    expect(answers.map(([answer]) => answer?.code)).toEqual(Array(3).fill('license_not_found'));
    expect(askedUpstream(harness, 'GUESS')).toBe(1);
    expect(askedUpstream(harness, 'MORE')).toBe(19);
  });
});

describe('the queue of look-ups', () => {
  it('the queue answers new customers within a second while a guesser with the same credential has 50 keys waiting', async () => {
    const customers = keys('NEW', 20);
    using harness = await startSyncHarness(customers);
    guess(harness, 50);
    await harness.time.advance(minute);
    let atOnce = 0;
    for (const licenseKey of customers) {
      const leaving = new AbortController();
      const first = ask(harness, [licenseKey], 'till', { signal: leaving.signal });
      await harness.time.advance(second);
      atOnce += count(first, 'ok');
      leaving.abort(new Error('the caller left'));
      // All keys of the guesser may have been refused together, and come back together. The second time no guess is first.
      const again = ask(harness, [licenseKey]);
      await harness.time.advance(1.3 * second);
      expect(again).toMatchObject([{ code: 'ok' }]);
    }
    expect(atOnce).toBeGreaterThanOrEqual(15);
  });

  it.each([
    { atOnce: 50, latencyMs: 20 },
    { atOnce: 50, latencyMs: 250 },
    { atOnce: 50, latencyMs: 450 },
    { atOnce: 10, latencyMs: 250 },
  ])(
    'the queue answers each new customer within 3 s while connections of the same credential guess: $atOnce, and the upstream takes $latencyMs ms',
    async ({ atOnce, latencyMs }) => {
      const customers = keys('NEW', 20);
      using harness = await startSyncHarness(customers);
      harness.vendor.latencyMs = latencyMs;
      guess(harness, atOnce);
      await harness.time.advance(minute);
      const found: string[] = [];
      for (const [index, licenseKey] of customers.entries()) {
        const leaving = new AbortController();
        const verify = async (): Promise<void> => {
          const answer = await harness.ask(licenseKey, 'till', leaving.signal, licenseKey);
          if (answer.ok) found.push(licenseKey);
        };
        void verify().catch(() => undefined);
        // Customers come at different times between two turns.
        await harness.time.advance(3 * second + index * 77);
        leaving.abort(new Error('the caller left'));
      }
      expect(found).toEqual(customers);
    },
  );

  it('the queue answers a customer who asks again at once, although guesses over the same connections keep it full', async () => {
    using harness = await startSyncHarness(['NEW']);
    guess(harness, 200);
    await harness.time.advance(35 * second);
    const first = ask(harness, ['NEW'], 'till', { connection: 'guesser 0' });
    await harness.time.advance(5 * second);
    expect(first).toMatchObject([{ code: 'rate_limited' }]);
    const again = ask(harness, ['NEW'], 'till', { connection: 'guesser 0' });
    await harness.time.advance(1.5 * second);
    expect(again).toMatchObject([{ code: 'ok' }]);
  });

  it('the queue serves repeated keys in the order of their first requests', async () => {
    const licenseKeys = keys('NEW', 6);
    using harness = await startSyncHarness(licenseKeys, { lookups: { perSecond: 0.1, maxWaiting: 128 } });
    await harness.verify('GUESS', 'till');
    for (const licenseKey of licenseKeys) {
      const leaving = new AbortController();
      ask(harness, [licenseKey], 'till', { signal: leaving.signal });
      await harness.time.advance(10);
      leaving.abort(new Error('the caller left'));
    }
    const answered = ask(harness, licenseKeys.toReversed());
    await harness.time.advance(29 * second);
    expect(answered.map(({ licenseKey }) => licenseKey)).toEqual(licenseKeys);
  });

  it('the queue gives every other turn to keys that are requested for the first time', async () => {
    using harness = await startSyncHarness([], { lookups: { perSecond: 1, maxWaiting: 128 } });
    const leaving = new AbortController();
    ask(harness, keys('USED', 10));
    await harness.time.advance(100);
    ask(harness, keys('AGAIN', 5), 'till', { signal: leaving.signal });
    await harness.time.advance(100);
    leaving.abort(new Error('the callers left'));
    ask(harness, [...keys('AGAIN', 5), ...keys('FIRST', 5)]);
    await harness.time.advance(9.5 * second);
    const served = harness.vendor.asked.slice(10).map((asked) => asked.replace('verify ', ''));
    expect(served.map((name) => name.replace(/-\d$/, '')).join(' ')).toMatch(
      /^(?:AGAIN FIRST ?|FIRST AGAIN ?)+/,
    );
    expect(served.filter((name) => name.startsWith('AGAIN'))).toEqual(
      keys('AGAIN', served.filter((name) => name.startsWith('AGAIN')).length),
    );
  });

  it('the queue limits its callers, and rejects one of the key with the most callers', async () => {
    using harness = await startSyncHarness([], { lookups: { perSecond: 2, maxWaiting: 30 } });
    ask(harness, keys('USED', 20));
    await harness.time.advance(100);
    const many = ask(harness, Array<string>(40).fill('GUESS'));
    const others = ask(harness, keys('NEW', 20));
    await harness.time.advance(1);
    expect([many.length, others.length]).toEqual([30, 0]);
    expect(count(many, 'rate_limited')).toBe(30);
  });

  it('a full queue rejects a caller of the credential with the most callers', async () => {
    using harness = await startSyncHarness([], { lookups: { perSecond: 0.1, maxWaiting: 30 } });
    for (const requester of ['crawler', 'till']) await harness.verify('USED', requester);
    const crawler = ask(harness, keys('GUESS', 50), 'crawler');
    await harness.verify('USED-BY-TILL', 'till');
    const till = ask(harness, keys('NEW', 10), 'till');
    await harness.time.advance(1);
    expect(count(crawler, 'rate_limited')).toBeGreaterThanOrEqual(30);
    expect(till).toEqual([]);
  });

  it('the queue gives the place of a caller who leaves to others, and keeps nothing about that caller', async () => {
    using harness = await startSyncHarness(['NEW'], { rate: 100, lookups: { perSecond: 2, maxWaiting: 30 } });
    ask(harness, keys('USED', 20));
    await harness.time.advance(100);
    const leaving = new AbortController();
    ask(harness, keys('GUESS', 30), 'till', { signal: leaving.signal });
    leaving.abort(new Error('the callers left'));
    const answered = ask(harness, ['NEW']);
    await harness.time.advance(second);
    expect(answered).toMatchObject([{ code: 'ok' }]);
    expect(askedUpstream(harness, 'GUESS')).toBe(0);
  });

  it('a look-up of another spelling of a known key counts once the key has many aliases', async () => {
    using harness = await startSyncHarness(['KEY'], { rate: 100 });
    harness.vendor.spells = () => 'KEY';
    for (const spelling of keys('first', maxAliases)) await harness.verify(spelling);
    await harness.time.advance(minute);
    const answered = ask(harness, keys('further', 100));
    await harness.time.advance(second);
    expect(askedUpstream(harness, 'further')).toBeLessThanOrEqual(22);
    await harness.time.advance(minute);
    expect(count(answered, 'ok')).toBe(answered.length - count(answered, 'rate_limited'));
  });

  it('the queue gets faster as soon as a reload allows more look-ups', async () => {
    const lookups = { perSecond: 0.1, maxWaiting: 128 };
    using harness = await startSyncHarness([], { lookups, rate: 100 });
    ask(harness, keys('GUESS', 20));
    await harness.time.advance(100);
    expect(harness.vendor.asked.length).toBe(1);
    lookups.perSecond = 10;
    await harness.time.advance(11 * second);
    expect(harness.vendor.asked.length).toBeGreaterThan(10);
  });

  it('the queue is empty when the process ends', async () => {
    using harness = await startSyncHarness([]);
    const answered = ask(harness, keys('GUESS', 60));
    await harness.time.advance(second);
    harness.end();
    await harness.time.advance(100);
    expect(answered.length).toBe(60);
    const late = ask(harness, ['LATE']);
    await harness.time.advance(0);
    expect(late).toMatchObject([{ code: 'rate_limited' }]);
  });
});
