import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { minute, second, startSyncHarness, type SyncHarness } from '../support/harness/sync-harness.ts';

const broken: Outcome<never> = { outcome: 'ambiguous', status: 500, detail: 'HTTP 500', retryAfterMs: null };
const silence: Outcome<never> = { ...broken, status: null, detail: 'no complete response in time' };

/** An agent that knows both keys; from now on the upstream fails at the bad one. */
async function createBadKey(how: Outcome<never>): Promise<SyncHarness> {
  const harness = await startSyncHarness(['GOOD', 'BAD', 'NEW']);
  await harness.verify('GOOD');
  await harness.time.advance(second);
  await harness.verify('BAD');
  harness.vendor.instead = (_, key) => (key === 'BAD' ? how : null);
  return harness;
}

describe('one key at which the upstream always fails', () => {
  it.each([
    ['with an error', broken],
    ['by never answering', silence],
  ])('a key that fails %s does not delay the uses of other keys', async (_, how) => {
    using harness = await createBadKey(how);
    await harness.change('BAD', 'usage');
    await harness.time.advance(10 * minute);
    await harness.change('GOOD', 'usage');
    await harness.time.advance(5 * minute);
    expect(harness.vendor.licenses.get('GOOD')?.uses).toBe(1);
    expect(harness.sync.limiter.status()).toMatchObject({ breaker: 'closed' });
    expect(await harness.verify('NEW')).toMatchObject({ ok: true });
  });

  it('a key that always fails is not retried because other keys are answered', async () => {
    using harness = await createBadKey(broken);
    await harness.change('BAD', 'usage');
    await harness.time.advance(minute);
    const before = harness.vendor.asked.length;
    for (let passed = 0; passed < 60; passed += 1) {
      await harness.change('GOOD', 'usage');
      await harness.time.advance(minute);
    }
    const about = (key: string): number =>
      harness.vendor.asked.slice(before).filter((asked) => asked.endsWith(key)).length;
    expect(harness.vendor.licenses.get('GOOD')?.uses).toBe(60);
    // If nothing else is sent for half a minute, every other probe reads this key; its own attempts are rare.
    expect(about('BAD')).toBeLessThan(60);
  });

  it('a key that always failed is delivered once the upstream is repaired', async () => {
    using harness = await createBadKey(broken);
    await harness.change('BAD', 'usage');
    await harness.time.advance(60 * minute);
    harness.vendor.instead = () => null;
    await harness.time.advance(20 * minute);
    expect(harness.vendor.licenses.get('BAD')?.uses).toBe(1);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, pending: 0, uncertain: 0 });
  });
});

describe('a change that the upstream refuses for now, while it answers reads of the key', () => {
  const refusals = [
    ['usage', 'missing', 404],
    ['decrease', 'missing', 404],
    ['disable', 'missing', 404],
    ['enable', 'missing', 404],
    ['enable', 'rejected', 409],
    ['enable', 'throttled', 429],
    ['enable', 'challenged', 403],
  ] as const;

  it.each(refusals)(
    'a change that is refused for now (%s, %s) is sent at longer and longer intervals',
    async (kind, reason, status) => {
      using harness = await startSyncHarness(['BAD', 'GOOD']);
      for (const key of ['GOOD', 'BAD']) await harness.verify(key);
      await harness.change('BAD', kind === 'enable' ? 'disable' : 'usage');
      await harness.time.advance(minute);
      const detail = `HTTP ${status}`;
      harness.vendor.instead = (what, key) =>
        key === 'BAD' && what !== 'verify'
          ? { outcome: 'not_applied', reason, status, detail, retryAfterMs: null }
          : null;
      await harness.change('BAD', kind);
      await harness.time.advance(60 * minute);
      const before = harness.vendor.asked.length;
      await harness.time.advance(60 * minute);
      const asked = harness.vendor.asked.slice(before).filter((each) => each === `${kind} BAD`);
      expect(asked.length).toBeGreaterThan(0);
      expect(asked.length).toBeLessThan(30);
    },
  );
});

describe('look-ups of unknown keys at which the upstream fails', () => {
  it('a failing look-up does not open the breaker, however often its key is looked up', async () => {
    using harness = await startSyncHarness(['NEW']);
    harness.vendor.instead = (_, key) => (key === 'NEW' ? null : broken);
    for (let count = 0; count < 20; count += 1) await harness.verify("'; DROP TABLE");
    expect(harness.sync.limiter.status().breaker).toBe('closed');
    expect(await harness.verify('NEW')).toMatchObject({ ok: true });
  });

  it('many failing look-ups do not block for long, because a known key shows that the upstream is up', async () => {
    using harness = await startSyncHarness(['GOOD', 'FINE', 'NEW']);
    for (const key of ['GOOD', 'FINE']) await harness.verify(key);
    harness.vendor.instead = (_, key) => (key.startsWith('ODD') ? broken : null);
    for (let count = 0; count < 5; count += 1) await harness.verify(`ODD-${count}`);
    await harness.time.advance(second);
    expect(harness.sync.limiter.status().breaker).toBe('closed');
    expect(await harness.verify('NEW')).toMatchObject({ ok: true });
  });
});

describe('an upstream that answers everything with an error', () => {
  it('an upstream that answers everything with an error gets only probes, and its recovery is noticed', async () => {
    using harness = await startSyncHarness(['A', 'B', 'C']);
    for (const key of ['A', 'B', 'C']) await harness.verify(key);
    harness.vendor.instead = () => broken;
    for (const key of ['A', 'B', 'C']) await harness.change(key, 'usage');
    await harness.time.advance(10 * minute);
    expect(harness.sync.limiter.status()).toMatchObject({ state: 'down', breaker: 'open' });
    const before = harness.vendor.asked.length;
    await harness.time.advance(10 * minute);
    const probes = harness.vendor.asked.slice(before);
    expect(probes.length).toBeLessThanOrEqual(20);
    expect(new Set(probes)).toEqual(new Set(['verify A', 'verify B', 'verify C']));
    harness.vendor.instead = () => null;
    await harness.time.advance(2 * minute);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 3, pending: 0, uncertain: 0 });
  });
});

describe('Retry-After', () => {
  const busy: Outcome<never> = {
    outcome: 'not_applied',
    reason: 'throttled',
    status: 429,
    detail: 'HTTP 429',
    retryAfterMs: 30 * minute,
  };

  async function createQuiet(): Promise<SyncHarness> {
    const harness = await startSyncHarness(['GOOD', 'NEW']);
    await harness.verify('GOOD');
    harness.vendor.instead = () => busy;
    await harness.change('GOOD', 'usage');
    await harness.time.advance(second);
    harness.vendor.instead = () => null;
    harness.vendor.asked.length = 0;
    return harness;
  }

  it('Retry-After is respected by reads, probes and sync now', async () => {
    using harness = await createQuiet();
    await harness.writer.write('retryNow', {});
    harness.sync.limiter.closeBreaker();
    expect(await harness.verify('NEW')).toMatchObject({ ok: false });
    await harness.time.advance(29 * minute);
    expect(harness.vendor.asked).toEqual([]);
    await harness.time.advance(2 * minute);
    expect(harness.vendor.licenses.get('GOOD')?.uses).toBe(1);
  });

  it.each([
    ['', 0],
    [', even if the clock was set back before it', -20 * 60 * minute],
  ])('Retry-After is respected across a restart%s', async (_, turnedByMs) => {
    using harness = await createQuiet();
    await harness.restart({ turnedByMs });
    await harness.writer.write('retryNow', {});
    harness.sync.limiter.closeBreaker();
    expect(await harness.verify('NEW')).toMatchObject({ ok: false });
    await harness.time.advance(29 * minute);
    expect(harness.vendor.asked).toEqual([]);
    await harness.time.advance(4 * minute);
    expect(harness.vendor.licenses.get('GOOD')?.uses).toBe(1);
  });
});

describe('a cache that answers every read', () => {
  it('a cache that answers every read delays a use instead of giving it a wrong base', async () => {
    using harness = await startSyncHarness(['KEY']);
    await harness.verify('KEY');
    await harness.restart();
    harness.vendor.cachedForMs = minute;
    await harness.change('KEY', 'usage');
    await harness.time.advance(5 * minute);
    expect(harness.vendor.asked).not.toContain('usage KEY');
    harness.vendor.cachedForMs = 0;
    await harness.time.advance(20 * minute);
    expect(harness.vendor.licenses.get('KEY')?.uses).toBe(1);
  });
});
