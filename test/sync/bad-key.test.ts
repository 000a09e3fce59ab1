import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { minute, second, startSyncStage, type SyncStage } from '../support/stage/sync-stage.ts';

const broken: Outcome<never> = { outcome: 'ambiguous', status: 500, detail: 'HTTP 500', retryAfterMs: null };
const silence: Outcome<never> = { ...broken, status: null, detail: 'no whole answer in time' };

/** An agent that knows both keys; from now on the upstream fails at the bad one. */
async function givenBadKey(how: Outcome<never>): Promise<SyncStage> {
  const stage = await startSyncStage(['GOOD', 'BAD', 'NEW']);
  await stage.verify('GOOD');
  await stage.time.advance(second);
  await stage.verify('BAD');
  stage.vendor.instead = (_, key) => (key === 'BAD' ? how : null);
  return stage;
}

describe('one key at which the upstream always fails', () => {
  it.each([
    ['with an error', broken],
    ['by never answering', silence],
  ])('%s does not keep the uses of the others', async (_, how) => {
    using stage = await givenBadKey(how);
    await stage.change('BAD', 'usage');
    await stage.time.advance(10 * minute);
    await stage.change('GOOD', 'usage');
    await stage.time.advance(5 * minute);
    expect(stage.vendor.licenses.get('GOOD')?.uses).toBe(1);
    expect(stage.sync.uplink.status()).toMatchObject({ breaker: 'closed' });
    expect(await stage.verify('NEW')).toMatchObject({ ok: true });
  });

  it('is not asked for again and again because the others are answered', async () => {
    using stage = await givenBadKey(broken);
    await stage.change('BAD', 'usage');
    await stage.time.advance(minute);
    const before = stage.vendor.asked.length;
    for (let passed = 0; passed < 60; passed += 1) {
      await stage.change('GOOD', 'usage');
      await stage.time.advance(minute);
    }
    const about = (key: string): number =>
      stage.vendor.asked.slice(before).filter((asked) => asked.endsWith(key)).length;
    expect(stage.vendor.licenses.get('GOOD')?.uses).toBe(60);
    // Every other probe is about it, when nothing else goes up for half a minute; its own tries are rare.
    expect(about('BAD')).toBeLessThan(60);
  });

  it('is delivered when the upstream has been mended', async () => {
    using stage = await givenBadKey(broken);
    await stage.change('BAD', 'usage');
    await stage.time.advance(60 * minute);
    stage.vendor.instead = () => null;
    await stage.time.advance(20 * minute);
    expect(stage.vendor.licenses.get('BAD')?.uses).toBe(1);
    expect(stage.store.operations.depth()).toMatchObject({ delivered: 1, pending: 0, uncertain: 0 });
  });
});

describe('a change that the upstream refuses for now, though it tells of its key', () => {
  const refusals = [
    ['usage', 'missing', 404],
    ['decrease', 'missing', 404],
    ['disable', 'missing', 404],
    ['enable', 'missing', 404],
    ['enable', 'rejected', 409],
    ['enable', 'throttled', 429],
    ['enable', 'challenged', 403],
  ] as const;

  it.each(refusals)('%s, %s: goes up ever more rarely', async (kind, reason, status) => {
    using stage = await startSyncStage(['BAD', 'GOOD']);
    for (const key of ['GOOD', 'BAD']) await stage.verify(key);
    await stage.change('BAD', kind === 'enable' ? 'disable' : 'usage');
    await stage.time.advance(minute);
    const detail = `HTTP ${status}`;
    stage.vendor.instead = (what, key) =>
      key === 'BAD' && what !== 'verify'
        ? { outcome: 'not_applied', reason, status, detail, retryAfterMs: null }
        : null;
    await stage.change('BAD', kind);
    await stage.time.advance(60 * minute);
    const before = stage.vendor.asked.length;
    await stage.time.advance(60 * minute);
    const asked = stage.vendor.asked.slice(before).filter((each) => each === `${kind} BAD`);
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.length).toBeLessThan(30);
  });
});

describe('look-ups of odd keys at which the upstream fails', () => {
  it('close nothing for the others, however often one is looked up', async () => {
    using stage = await startSyncStage(['NEW']);
    stage.vendor.instead = (_, key) => (key === 'NEW' ? null : broken);
    for (let count = 0; count < 20; count += 1) await stage.verify("'; DROP TABLE");
    expect(stage.sync.uplink.status().breaker).toBe('closed');
    expect(await stage.verify('NEW')).toMatchObject({ ok: true });
  });

  it('close nothing for long when there are many: a known key shows that the upstream is there', async () => {
    using stage = await startSyncStage(['GOOD', 'FINE', 'NEW']);
    for (const key of ['GOOD', 'FINE']) await stage.verify(key);
    stage.vendor.instead = (_, key) => (key.startsWith('ODD') ? broken : null);
    for (let count = 0; count < 5; count += 1) await stage.verify(`ODD-${count}`);
    await stage.time.advance(second);
    expect(stage.sync.uplink.status().breaker).toBe('closed');
    expect(await stage.verify('NEW')).toMatchObject({ ok: true });
  });
});

describe('an upstream that fails at everything, with an error', () => {
  it('is left alone but for probes, and its return is noticed', async () => {
    using stage = await startSyncStage(['A', 'B', 'C']);
    for (const key of ['A', 'B', 'C']) await stage.verify(key);
    stage.vendor.instead = () => broken;
    for (const key of ['A', 'B', 'C']) await stage.change(key, 'usage');
    await stage.time.advance(10 * minute);
    expect(stage.sync.uplink.status()).toMatchObject({ state: 'down', breaker: 'open' });
    const before = stage.vendor.asked.length;
    await stage.time.advance(10 * minute);
    const probes = stage.vendor.asked.slice(before);
    expect(probes.length).toBeLessThanOrEqual(20);
    expect(new Set(probes)).toEqual(new Set(['verify A', 'verify B', 'verify C']));
    stage.vendor.instead = () => null;
    await stage.time.advance(2 * minute);
    expect(stage.store.operations.depth()).toMatchObject({ delivered: 3, pending: 0, uncertain: 0 });
  });
});

describe('a quiet that the upstream asked for', () => {
  const busy: Outcome<never> = {
    outcome: 'not_applied',
    reason: 'throttled',
    status: 429,
    detail: 'HTTP 429',
    retryAfterMs: 30 * minute,
  };

  async function givenQuiet(): Promise<SyncStage> {
    const stage = await startSyncStage(['GOOD', 'NEW']);
    await stage.verify('GOOD');
    stage.vendor.instead = () => busy;
    await stage.change('GOOD', 'usage');
    await stage.time.advance(second);
    stage.vendor.instead = () => null;
    stage.vendor.asked.length = 0;
    return stage;
  }

  it('is kept by reads, probes and a person in a hurry', async () => {
    using stage = await givenQuiet();
    await stage.writer.write('retryNow', {});
    stage.sync.uplink.closeBreaker();
    expect(await stage.verify('NEW')).toMatchObject({ ok: false });
    await stage.time.advance(29 * minute);
    expect(stage.vendor.asked).toEqual([]);
    await stage.time.advance(2 * minute);
    expect(stage.vendor.licenses.get('GOOD')?.uses).toBe(1);
  });

  it.each([
    ['', 0],
    [', also one before which the clock was turned back', -20 * 60 * minute],
  ])('is kept across a restart%s', async (_, turnedByMs) => {
    using stage = await givenQuiet();
    await stage.restart({ turnedByMs });
    await stage.writer.write('retryNow', {});
    stage.sync.uplink.closeBreaker();
    expect(await stage.verify('NEW')).toMatchObject({ ok: false });
    await stage.time.advance(29 * minute);
    expect(stage.vendor.asked).toEqual([]);
    await stage.time.advance(4 * minute);
    expect(stage.vendor.licenses.get('GOOD')?.uses).toBe(1);
  });
});

describe('a cache on the way that answers every read', () => {
  it('keeps a use from being sent, rather than letting it be counted from the wrong base', async () => {
    using stage = await startSyncStage(['KEY']);
    await stage.verify('KEY');
    await stage.restart();
    stage.vendor.cachedForMs = minute;
    await stage.change('KEY', 'usage');
    await stage.time.advance(5 * minute);
    expect(stage.vendor.asked).not.toContain('usage KEY');
    stage.vendor.cachedForMs = 0;
    await stage.time.advance(20 * minute);
    expect(stage.vendor.licenses.get('KEY')?.uses).toBe(1);
  });
});
