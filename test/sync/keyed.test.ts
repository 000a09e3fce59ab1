import { describe, expect, it } from 'vitest';
import { upstreamEpoch } from '../../src/service/outbox/upstream/identity.ts';
import { allIds, newest, offline, shown, upstreamUses } from '../support/harness/keyed-harness.ts';
import { lostAnswer, refusedWith } from '../support/harness/latchkey-vendor.ts';
import { minute, second, startLatchkeyHarness } from '../support/harness/sync-harness.ts';

describe('a change for an upstream that is a Latchkey', () => {
  it('is sent under the id of its operation until it is answered, and counts once', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    let lost = 0;
    harness.vendor.loses = (what) => (what === 'usage' && (lost += 1) <= 3 ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(5 * minute);
    const { keyed } = harness.latchkey;
    expect(keyed.map(({ isRepeat }) => isRepeat)).toEqual([false, true, true, true]);
    expect(new Set(keyed.map(({ id }) => id)).size).toBe(1);
    expect(upstreamUses(harness, 'KEY')).toBe(1);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, inferred: 0, uncertain: 0 });
    expect(await shown(harness, 'KEY')).toMatchObject({ uses: 1 });
  });

  it('is not delayed and not read back after a lost answer', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    const { vendor } = harness;
    vendor.loses = (what) => (what === 'usage' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    vendor.loses = () => null;
    await harness.time.advance(5 * second);
    expect(vendor.asked).toEqual(['verify KEY', 'usage KEY', 'usage KEY', 'usage KEY']);
    expect(upstreamUses(harness, 'KEY')).toBe(1);
  });

  it('that was in flight when the process was killed is sent again by the next process, and counts once', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.vendor.loses = (what) => (what === 'usage' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(30);
    harness.vendor.loses = () => null;
    await harness.restart();
    await harness.time.advance(minute);
    expect(harness.latchkey.keyed.at(-1)).toMatchObject({ isRepeat: true });
    expect(upstreamUses(harness, 'KEY')).toBe(1);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, inferred: 0, uncertain: 0 });
  });

  it('does not wait for sync.rate', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
    using harness = await startLatchkeyHarness(keys, { rate: 1 });
    for (const key of keys) await harness.change(key, 'usage');
    await harness.time.advance(second);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 20, pending: 0 });
  });

  it('whose answer is no longer stored waits for a person, and is not counted blindly', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    const { vendor, latchkey } = harness;
    vendor.loses = () => lostAnswer;
    await harness.change('KEY', 'usage');
    await harness.time.advance(30);
    vendor.loses = () => null;
    latchkey.answers.clear();
    latchkey.prunedBefore = Infinity;
    await harness.time.advance(minute);
    expect(newest(harness)).toMatchObject({ progress: { state: 'uncertain', held: true } });
    expect(upstreamUses(harness, 'KEY')).toBe(1);
  });

  it('that was never sent is carried out however old it is', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.latchkey.prunedBefore = Infinity;
    await offline(harness, () => harness.change('KEY', 'usage'));
    harness.sync.limiter.resume();
    await harness.time.advance(minute);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1 });
    expect(upstreamUses(harness, 'KEY')).toBe(1);
  });
});

describe('a gateway before a Latchkey', () => {
  it('whose 400 has no code lets a change that may have counted wait, and the change is not dead', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.vendor.loses = () => lostAnswer;
    await harness.change('KEY', 'usage');
    await harness.time.advance(30);
    harness.vendor.loses = () => null;
    const badRequest = {
      outcome: 'not_applied',
      reason: 'refused',
      status: 400,
      detail: 'HTTP 400',
    } as const;
    harness.vendor.instead = (what) => (what === 'usage' ? { ...badRequest, retryAfterMs: null } : null);
    await harness.time.advance(minute);
    expect(newest(harness)).toMatchObject({ progress: { state: 'pending', unanswered: true } });
    harness.vendor.instead = () => null;
    await harness.time.advance(10 * minute);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, dead: 0 });
    expect(upstreamUses(harness, 'KEY')).toBe(1);
  });

  it('that hides the change feed behind a page does not keep the agent from the upstream after an outage', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    const page = {
      outcome: 'ambiguous',
      status: 404,
      detail: 'HTTP 404: a page',
      retryAfterMs: null,
    } as const;
    harness.latchkey.instead = () => page;
    harness.vendor.instead = () => lostAnswer;
    for (let use = 0; use < 8; use += 1) await harness.change('KEY', 'usage');
    await harness.time.advance(20 * minute);
    expect(harness.sync.limiter.admission().admitted).toBe(false);
    harness.vendor.instead = () => null;
    await harness.time.advance(20 * minute);
    expect(upstreamUses(harness, 'KEY')).toBe(8);
    expect(harness.sync.limiter.admission().admitted).toBe(true);
  });

  it('that hides the change feed behind a page is not taken for an outage', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    const page = {
      outcome: 'ambiguous',
      status: 404,
      detail: 'HTTP 404: a page',
      retryAfterMs: null,
    } as const;
    harness.latchkey.instead = () => page;
    await harness.time.advance(240 * minute);
    expect(harness.sync.limiter.admission().admitted).toBe(true);
  });

  it('that removes the ids leaves a use that may have counted twice inferred', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.latchkey.hidesIds = true;
    harness.vendor.loses = () => lostAnswer;
    await harness.change('KEY', 'usage');
    await harness.time.advance(30);
    harness.vendor.loses = () => null;
    await harness.time.advance(5 * minute);
    expect(newest(harness).progress.state).toBe('inferred');
  });
});

describe('another store at the address of the upstream', () => {
  it('gets nothing that the former store may have carried out', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.vendor.loses = () => lostAnswer;
    await harness.change('KEY', 'usage');
    await harness.time.advance(30);
    harness.vendor.loses = () => null;
    harness.latchkey.epoch = 'fedcba9876543210'.repeat(2);
    harness.latchkey.answers.clear();
    await harness.time.advance(5 * minute);
    expect(newest(harness)).toMatchObject({ progress: { state: 'uncertain', held: true } });
    expect(upstreamUses(harness, 'KEY')).toBe(1);
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    expect(upstreamUses(harness, 'KEY')).toBe(2);
    expect(upstreamEpoch(harness.store)).toBe(harness.latchkey.epoch);
  });
});

describe('an agent whose store was restored', () => {
  it('sends what is unfinished again under the same ids, and it counts once', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await offline(harness, async () => {
      await harness.change('KEY', 'usage');
      await harness.change('KEY', 'usage');
    });
    const [first] = allIds(harness.store).map((id) => harness.store.operations.get(id));
    if (first === null || first === undefined) throw new Error('there is no operation');
    // The original had sent the first use.
    const { id, createdAt } = first;
    const keyed = { id, createdAt, epoch: harness.latchkey.epoch, isRepeat: false, seenRevision: null };
    harness.latchkey.carryOut({
      productId: 'press',
      licenseKey: 'KEY',
      kind: 'usage',
      requestId: null,
      keyed,
    });
    await harness.writer.write('restore', {});
    await harness.restart();
    harness.sync.limiter.resume();
    await harness.time.advance(5 * minute);
    expect(harness.latchkey.keyed.slice(1).every(({ isRepeat }) => isRepeat)).toBe(true);
    expect(upstreamUses(harness, 'KEY')).toBe(2);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2, inferred: 0, uncertain: 0 });
  });
});

describe('an agent whose store was restored, and whose upstream another store has replaced', () => {
  it('sends nothing that its original may have sent to the former store', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await offline(harness, () => harness.change('KEY', 'usage'));
    await harness.writer.write('restore', {});
    harness.latchkey.epoch = 'fedcba9876543210'.repeat(2);
    // An answer to something else names the store first.
    await harness.writer.write('nameUpstream', { epoch: harness.latchkey.epoch });
    await harness.restart();
    await harness.time.advance(5 * minute);
    expect(newest(harness)).toMatchObject({ progress: { state: 'uncertain', held: true } });
    expect(upstreamUses(harness, 'KEY')).toBe(0);
  });
});

describe('a key that the upstream says is in use by another attempt', () => {
  it('is asked for again', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    let left = 2;
    harness.vendor.instead = (what) =>
      what === 'usage' && (left -= 1) >= 0
        ? { ...refusedWith('idempotency_key_in_use'), reason: 'throttled', retryAfterMs: second }
        : null;
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    expect(upstreamUses(harness, 'KEY')).toBe(1);
  });
});
