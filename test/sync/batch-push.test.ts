import { describe, expect, it, vi } from 'vitest';
import type { Operation } from '../../src/domain/outbox/operation.ts';
import { agentIdOf } from '../../src/service/outbox/agent-id.ts';
import { protocolOf } from '../../src/service/outbox/protocol.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { hidden, lostAnswer } from '../support/harness/latchkey-vendor.ts';
import { defaultPolicy, minute, second, startPushingHarness } from '../support/harness/sync-harness.ts';

const day = 1_440 * minute;

const usesOf = (harness: { vendor: { licenses: ReadonlyMap<string, { uses: number }> } }, key: string) =>
  harness.vendor.licenses.get(key)?.uses;

describe('changes for an upstream that is Latchkey', () => {
  it('changes of many keys are delivered by one push', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
    using harness = await startPushingHarness(keys, { rate: 100 });
    harness.latchkey.instead = () => lostAnswer;
    for (const key of keys) await harness.change(key, 'usage');
    harness.latchkey.instead = () => null;
    await harness.time.advance(minute);
    expect(keys.map((key) => usesOf(harness, key))).toEqual(keys.map(() => 1));
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 20, pending: 0, in_flight: 0 });
    expect(new Set(harness.latchkey.pushes).size).toBeLessThanOrEqual(2);
  });

  it('a push whose answers are lost is repeated byte for byte, and counts once', async () => {
    using harness = await startPushingHarness(['KEY']);
    let lost = 0;
    harness.latchkey.loses = (what) => {
      if (what !== 'push' || lost === 3) return null;
      lost += 1;
      return lostAnswer;
    };
    await harness.change('KEY', 'usage');
    await harness.time.advance(5 * minute);
    expect(harness.latchkey.pushes).toHaveLength(4);
    expect(new Set(harness.latchkey.pushes).size).toBe(1);
    expect(usesOf(harness, 'KEY')).toBe(1);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, inferred: 0, uncertain: 0 });
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { uses: 1 } } });
  });

  it('a push of a process that was killed is repeated by the next process', async () => {
    using harness = await startPushingHarness(['KEY']);
    harness.latchkey.loses = (what) => (what === 'push' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    harness.latchkey.loses = () => null;
    await harness.restart();
    await harness.time.advance(minute);
    expect(new Set(harness.latchkey.pushes).size).toBe(1);
    expect(usesOf(harness, 'KEY')).toBe(1);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, inferred: 0, uncertain: 0 });
  });

  it('a push for which the credential lacks a scope is sent at longer and longer intervals', async () => {
    using harness = await startPushingHarness(['KEY']);
    const refusal = { outcome: 'not_applied', reason: 'unauthorized', status: 403 } as const;
    harness.latchkey.instead = (what) =>
      what === 'push' ? { ...refusal, detail: 'scope_missing', retryAfterMs: null } : null;
    await harness.change('KEY', 'usage');
    await harness.time.advance(10 * minute);
    expect(harness.latchkey.asked.filter((what) => what === 'push').length).toBeLessThan(20);
    harness.latchkey.instead = () => null;
    await harness.time.advance(15 * minute);
    expect(usesOf(harness, 'KEY')).toBe(1);
  });

  it('changes of a key that is known under another product now are pushed by their own products', async () => {
    using harness = await startPushingHarness(['KEY']);
    harness.sync.limiter.pause();
    await harness.change('KEY', 'usage');
    const other = harness.store.operations.add(buildOperation({ subject: 'KEY', productId: 'other' }));
    const limits = { operations: 500, bytes: 262_144 };
    const plan = async (productId: string): Promise<readonly Operation[] | undefined> => {
      const planned = await harness.writer.write('planPush', { productId, limits });
      return planned.ok ? planned.value.push?.operations : undefined;
    };
    expect(await plan('press')).toMatchObject([{ productId: 'press' }]);
    const answered = { seq: 1, epoch: harness.latchkey.epoch, results: {}, policy: defaultPolicy };
    await harness.writer.write('recordPush', { productId: 'press', ...answered });
    expect(await plan('other')).toMatchObject([{ id: other.id }]);
  });

  it('a change that a restored upstream has lost comes back before the changes that wait, and they wait for it', async () => {
    using harness = await startPushingHarness(['KEY']);
    const { store, latchkey } = harness;
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    expect(store.operations.depth()).toMatchObject({ delivered: 1 });
    harness.sync.limiter.pause();
    await harness.change('KEY', 'usage');
    const agent = agentIdOf(store) ?? '';
    await harness.writer.write('resumePushes', { productId: 'press', agent, last: 0, epoch: latchkey.epoch });
    const waiting = store.operations.firstPending('KEY', 'counter', 2);
    expect(waiting.map(({ seq, nextAt }) => [seq, nextAt !== null])).toEqual([
      [1, true],
      [2, false],
    ]);
  });

  it('an enable is pushed only after no disable can arrive any more that was sent by the plain protocol', async () => {
    using harness = await startPushingHarness(['KEY']);
    const { latchkey, store, time } = harness;
    harness.sync.limiter.pause();
    await harness.change('KEY', 'disable');
    const disable = store.operations.firstPending('KEY', 'state', 1)[0] as Operation;
    const reconcileAt = (disable.nextAt ?? 0) + minute;
    store.operations.put({ ...disable, reconcileAt, progress: { state: 'pending', maybeApplied: true } });
    await harness.change('KEY', 'enable');
    harness.sync.limiter.resume();
    const pushed = (): string[] => latchkey.pushes.map((body) => (body.match(/"kind":"\w+"/g) ?? []).join());
    await time.advance(59 * second);
    expect(pushed()).toEqual(['"kind":"disable"']);
    await time.advance(2 * second);
    expect(pushed()).toEqual(['"kind":"disable"', '"kind":"enable"']);
    expect(harness.vendor.licenses.get('KEY')).toMatchObject({ enabled: true });
  });

  it('a push is planned from no more operations than it can send, however many wait', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
    using harness = await startPushingHarness(keys, { rate: 1_000 });
    harness.sync.limiter.pause();
    for (const key of keys) for (let use = 0; use < 20; use += 1) await harness.change(key, 'usage');
    await harness.change('KEY-7', 'disable');
    const { operations } = harness.store;
    const firstPending = operations.firstPending.bind(operations);
    let read = 0;
    operations.firstPending = (...queue) => {
      const first = firstPending(...queue);
      read += first.length;
      return first;
    };
    const limits = { operations: 30, bytes: 262_144 };
    const planned = await harness.writer.write('planPush', { productId: 'press', limits });
    const sent = planned.ok ? (planned.value.push?.operations ?? []) : [];
    expect(sent).toHaveLength(30);
    expect(sent[0]).toMatchObject({ kind: 'disable' });
    expect(read).toBeLessThanOrEqual(keys.length + 1 + 30);
  });

  for (const kind of ['reused', 'out_of_sequence'] as const) {
    it(`an upstream that answers ${kind} to each push is asked at longer and longer intervals`, async () => {
      using harness = await startPushingHarness(['KEY']);
      const { latchkey } = harness;
      const push = latchkey.push.bind(latchkey);
      let isIll = true;
      let pushes = 0;
      latchkey.push = async (...request) => {
        if (!isIll) return await push(...request);
        pushes += 1;
        const value = { kind, last: 1_000, epoch: latchkey.epoch };
        const confirmedAt = harness.time.clock().now();
        return { outcome: 'applied', value, confirmedAt, isCached: false, instance: 'vendor' };
      };
      await harness.change('KEY', 'usage');
      await harness.time.advance(10 * minute);
      expect(pushes).toBeLessThan(20);
      isIll = false;
      await harness.time.advance(20 * minute);
      expect(usesOf(harness, 'KEY')).toBe(1);
      expect(harness.store.operations.depth()).toMatchObject({ delivered: 1, pending: 0, uncertain: 0 });
    });
  }

  it('an upstream that claims pushes that were never sent is asked at longer and longer intervals', async () => {
    using harness = await startPushingHarness(['KEY']);
    const { latchkey } = harness;
    const changes = latchkey.changes.bind(latchkey);
    latchkey.changes = async (...request) => {
      const told = await changes(...request);
      return told.outcome === 'applied' ? { ...told, value: { ...told.value, lastSeq: 1_000 } } : told;
    };
    await harness.time.advance(10 * minute);
    const before = latchkey.questions;
    await harness.time.advance(10 * minute);
    expect(latchkey.questions - before).toBeLessThan(20);
  });

  it('an upstream that says nothing about changes is asked about them at longer and longer intervals', async () => {
    using harness = await startPushingHarness(['KEY']);
    harness.latchkey.instead = (what) => (what === 'push' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.writer.write('restore', {});
    harness.latchkey.instead = () => null;
    const known = harness.latchkey.known.bind(harness.latchkey);
    harness.latchkey.known = async (...request) => {
      const told = await known(...request);
      return told.outcome === 'applied' ? { ...told, value: [] } : told;
    };
    await harness.restart();
    await harness.time.advance(10 * minute);
    expect(harness.latchkey.asked.filter((what) => what === 'known').length).toBeLessThan(20);
  });

  it('sync now sends a push that failed for an hour at once', async () => {
    using harness = await startPushingHarness(['KEY']);
    harness.latchkey.instead = (what) => (what === 'push' ? hidden : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(60 * minute);
    harness.latchkey.instead = () => null;
    harness.sync.limiter.closeBreaker();
    await harness.time.advance(second);
    expect(usesOf(harness, 'KEY')).toBe(1);
  });

  it('a revocation comes before the uses that wait', async () => {
    using harness = await startPushingHarness(['A', 'B']);
    harness.latchkey.instead = () => lostAnswer;
    await harness.change('A', 'usage');
    await harness.time.advance(second);
    await harness.change('A', 'usage');
    await harness.change('B', 'disable');
    harness.latchkey.instead = () => null;
    await harness.time.advance(5 * minute);
    const last = JSON.parse(harness.latchkey.pushes.at(-1) ?? '') as { operations: { kind: string }[] };
    expect(last.operations.map(({ kind }) => kind)).toEqual(['disable', 'usage']);
    expect(harness.vendor.licenses.get('B')?.enabled).toBe(false);
  });

  it('a refused operation does not stop the operations behind it', async () => {
    using harness = await startPushingHarness(['A', 'B']);
    harness.latchkey.refuses = ({ license_key: key }) =>
      key === 'A' ? { outcome: 'refused', code: 'parameters_invalid' } : null;
    await harness.change('A', 'usage');
    await harness.change('B', 'usage');
    await harness.time.advance(minute);
    expect(harness.store.operations.depth()).toMatchObject({ dead: 1, delivered: 1, in_flight: 0 });
    expect(await harness.verify('A')).toMatchObject({ value: { license: { uses: 0 } } });
  });

  for (const isBack of [true, false]) {
    const end = isBack ? 'is delivered when the upstream knows it again' : 'is dead when the key is gone';
    it(`a change of a missing key that nobody asks for any longer ${end}`, async () => {
      using harness = await startPushingHarness(['KEY', 'OTHER'], {
        policy: { ...defaultPolicy, goneMs: 60 * minute, graceMs: 60 * minute },
      });
      harness.latchkey.instead = () => lostAnswer;
      harness.vendor.instead = () => lostAnswer;
      await harness.change('KEY', 'usage');
      await harness.time.advance(90 * minute);
      const license = harness.vendor.licenses.get('KEY');
      if (license === undefined) throw new Error('there is no license');
      harness.vendor.licenses.delete('KEY');
      harness.latchkey.instead = () => null;
      harness.vendor.instead = () => null;
      await harness.time.advance(20 * minute);
      if (isBack) harness.vendor.licenses.set('KEY', license);
      await harness.time.advance(2 * 60 * minute);
      expect(harness.store.operations.depth()).toMatchObject({
        pending: 0,
        delivered: isBack ? 1 : 0,
        dead: isBack ? 0 : 1,
      });
    });
  }

  it('a gateway that hides /sync/v1 for an hour does not bring the plain protocol back', async () => {
    using harness = await startPushingHarness(['KEY']);
    harness.vendor.asked.length = 0;
    harness.latchkey.instead = () => hidden;
    await harness.change('KEY', 'usage');
    await harness.time.advance(60 * minute);
    expect(harness.vendor.asked.filter((asked) => asked.startsWith('usage'))).toEqual([]);
    expect(protocolOf(harness.store)).toBe('latchkey');
    harness.latchkey.instead = () => null;
    await harness.time.advance(20 * minute);
    expect(usesOf(harness, 'KEY')).toBe(1);
  });

  for (const [when, uses] of [
    ['a new change shows it', 3],
    ['there is nothing new to send', 2],
  ] as const) {
    it(`an upstream that was restored gets the pushes again that it has lost, and counts each use once, when ${when}`, async () => {
      using harness = await startPushingHarness(['KEY']);
      await harness.change('KEY', 'usage');
      await harness.time.advance(minute);
      const [backup] = [...harness.latchkey.rows];
      const license = harness.vendor.licenses.get('KEY');
      const seen = new Map(harness.latchkey.seen);
      await harness.change('KEY', 'usage');
      await harness.time.advance(minute);
      expect(usesOf(harness, 'KEY')).toBe(2);
      if (backup === undefined || license === undefined) throw new Error('nothing was pushed');
      harness.latchkey.rows.set(...backup);
      harness.latchkey.seen.clear();
      for (const entry of seen) harness.latchkey.seen.set(...entry);
      harness.latchkey.epoch = '0123456789abcdef-2';
      harness.latchkey.set('KEY', license);
      harness.latchkey.asked.length = 0;
      if (uses === 3) await harness.change('KEY', 'usage');
      await harness.time.advance(2 * minute);
      expect(usesOf(harness, 'KEY')).toBe(uses);
      expect(harness.store.operations.depth()).toMatchObject({ delivered: uses, pending: 0, in_flight: 0 });
      expect(await harness.verify('KEY')).toMatchObject({ value: { license: { uses } } });
      expect(harness.latchkey.asked.length).toBeLessThan(30);
    });
  }
});

describe('an upstream whose store is not the one before', () => {
  it('another store with the same licenses gets no delivered change again', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    harness.latchkey.rows.clear();
    harness.latchkey.seen.clear();
    harness.latchkey.epoch = 'fedcba9876543210-1';
    await harness.time.advance(2 * minute);
    await harness.change('KEY', 'usage');
    await harness.time.advance(2 * minute);
    expect(usesOf(harness, 'KEY')).toBe(2);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { uses: 2 } } });
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2, uncertain: 0 });
  });

  it('a change whose push was lost with the former store is held for a person', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    harness.latchkey.instead = (what) => (what === 'push' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    harness.latchkey.rows.clear();
    harness.latchkey.epoch = 'fedcba9876543210-1';
    harness.latchkey.instead = () => null;
    await harness.time.advance(5 * minute);
    expect(usesOf(harness, 'KEY')).toBe(1);
    expect(harness.store.operations.heldCount()).toBe(1);
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    expect(usesOf(harness, 'KEY')).toBe(2);
  });

  it('a change that the upstream may have forgotten is not sent again', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    harness.latchkey.rows.clear();
    harness.latchkey.seen.clear();
    harness.latchkey.epoch = '0123456789abcdef-2';
    harness.end();
    await harness.restart({ turnedByMs: (29 * 24 + 1) * 60 * minute });
    await harness.time.advance(5 * minute);
    expect(harness.latchkey.asked).toContain('changes');
    expect(usesOf(harness, 'KEY')).toBe(1);
  });

  it('an upstream that was put back by hand tells every followed key anew', async () => {
    using harness = await startPushingHarness(['KEY', 'OTHER']);
    await harness.time.advance(10 * second);
    const [before] = [...harness.latchkey.rows];
    const [license, other] = ['KEY', 'OTHER'].map((key) => harness.vendor.licenses.get(key));
    if (license === undefined || other === undefined) throw new Error('there is no license');
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    harness.latchkey.rows.clear();
    if (before !== undefined) harness.latchkey.rows.set(...before);
    harness.latchkey.seen.clear();
    // The position of the agent is one of this history again, so the upstream cannot see what the agent has missed.
    harness.vendor.licenses.set('KEY', license);
    harness.vendor.licenses.set('OTHER', { ...other, enabled: false });
    await harness.time.advance(minute);
    expect(usesOf(harness, 'KEY')).toBe(1);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { uses: 1 } } });
    expect(await harness.verify('OTHER')).toMatchObject({ value: { license: { enabled: false } } });
  });
});

describe('followed license keys', () => {
  it('a refund at the upstream is answered at once, without a read of the key', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.time.advance(10 * second);
    harness.vendor.asked.length = 0;
    harness.latchkey.set('KEY', { enabled: false });
    await harness.time.advance(second);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
    expect(harness.vendor.asked).toEqual([]);
  });

  it('an answer without changes confirms every followed key', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.time.advance(10 * second);
    const before = harness.store.snapshots.get('KEY')?.confirmedAt ?? 0;
    await harness.time.advance(5 * minute);
    const after = harness.store.snapshots.get('KEY')?.confirmedAt ?? 0;
    expect(after - before).toBeGreaterThanOrEqual(4 * minute);
  });

  it('long license keys are followed by several requests, which an upstream can read', async () => {
    const keys = Array.from({ length: 400 }, (_, index) => `${'漢'.repeat(90)}${index}`);
    using harness = await startPushingHarness(keys, { rate: 1_000 });
    await harness.time.advance(minute);
    // The upstream asks for all keys again.
    harness.latchkey.epoch = '0123456789abcdef-2';
    await harness.time.advance(2 * minute);
    expect(harness.store.snapshots.followedCount('press')).toBe(400);
    expect(harness.latchkey.mostBytes).toBeGreaterThan(30_000);
    expect(harness.latchkey.mostBytes).toBeLessThan(70_000);
  });

  it('a key that is missing at the upstream is asked about seldom', async () => {
    using harness = await startPushingHarness(['KEY', 'OTHER'], {
      policy: { ...defaultPolicy, goneMs: day },
    });
    await harness.time.advance(10 * second);
    harness.vendor.licenses.delete('KEY');
    // The upstream asks for all keys again.
    harness.latchkey.epoch = '0123456789abcdef-2';
    await harness.time.advance(minute);
    const before = harness.latchkey.questions;
    await harness.time.advance(minute);
    expect(harness.latchkey.questions - before).toBeLessThan(5);
    // Only a second 404 after a day shows that the key is gone.
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: true } } });
  });

  it('a key that a read has not found either is followed again only when a read finds it', async () => {
    using harness = await startPushingHarness(['KEY', 'OTHER'], {
      policy: { ...defaultPolicy, goneMs: day, refreshMs: 10 * minute },
    });
    await harness.time.advance(10 * second);
    const license = harness.vendor.licenses.get('KEY');
    if (license === undefined) throw new Error('there is no license');
    harness.vendor.licenses.delete('KEY');
    harness.latchkey.epoch = '0123456789abcdef-2';
    await harness.time.advance(30 * minute);
    const before = harness.latchkey.questions;
    await harness.time.advance(minute);
    expect(harness.latchkey.questions - before).toBeLessThan(5);
    harness.vendor.licenses.set('KEY', license);
    await harness.time.advance(5 * minute);
    harness.latchkey.set('KEY', { enabled: false });
    await harness.time.advance(second);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
  });

  it('an agent that follows as many keys as it may still gets changes, and reads the other keys', async () => {
    using harness = await startPushingHarness(['KEY', 'OTHER'], {
      policy: { ...defaultPolicy, refreshMs: 10 * minute },
    });
    await harness.time.advance(10 * second);
    const { snapshots } = harness.store;
    snapshots.setFollowed('OTHER', false);
    vi.spyOn(snapshots, 'followedCount').mockReturnValue(100_000);
    const changes = harness.latchkey.changes.bind(harness.latchkey);
    harness.latchkey.changes = async (...request) =>
      request[2].follow.length > 0 ? lostAnswer : await changes(...request);
    const before = harness.latchkey.questions;
    await harness.time.advance(minute);
    expect(harness.latchkey.questions - before).toBeLessThan(5);
    harness.latchkey.set('KEY', { enabled: false });
    harness.latchkey.set('OTHER', { enabled: false });
    await harness.time.advance(second);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
    await harness.time.advance(15 * minute);
    expect(await harness.verify('OTHER')).toMatchObject({ value: { license: { enabled: false } } });
  });

  it('a key that is found under another product is followed with the credential of that product', async () => {
    using harness = await startPushingHarness(['KEY'], { productIds: ['press', 'other'] });
    await harness.time.advance(10 * second);
    const changes = harness.latchkey.changes.bind(harness.latchkey);
    const followed: string[] = [];
    harness.latchkey.changes = async (product, agent, request, signal) => {
      followed.push(...request.follow.map((key) => `${product} ${key}`));
      return await changes(product, agent, request, signal);
    };
    await harness.within(harness.sync.fetcher.fetch('other', 'KEY', 'refresh'));
    await harness.time.advance(minute);
    expect(harness.store.snapshots.get('KEY')?.productId).toBe('other');
    expect(followed).toEqual(['other KEY']);
  });

  it('an upstream that answers before the wait is over is asked once a second', async () => {
    using harness = await startPushingHarness(['KEY']);
    const changes = harness.latchkey.changes.bind(harness.latchkey);
    harness.latchkey.changes = (product, agent, request, signal) =>
      changes(product, agent, { ...request, waitS: 0 }, signal);
    await harness.time.advance(minute);
    const before = harness.latchkey.questions;
    await harness.time.advance(minute);
    expect(harness.latchkey.questions - before).toBeLessThanOrEqual(61);
    harness.latchkey.set('KEY', { enabled: false });
    await harness.time.advance(2 * second);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
  });

  it('an upstream whose clock was ahead for a moment does not confirm a key in the future', async () => {
    using harness = await startPushingHarness(['KEY']);
    const changes = harness.latchkey.changes.bind(harness.latchkey);
    let aheadMs = 365 * day;
    harness.latchkey.changes = async (...request) => {
      const told = await changes(...request);
      if (told.outcome !== 'applied') return told;
      return { ...told, value: { ...told.value, confirmedAt: told.value.confirmedAt + aheadMs } };
    };
    await harness.time.advance(minute);
    harness.latchkey.set('KEY', { uses: 5 });
    await harness.time.advance(minute);
    aheadMs = 0;
    await harness.time.advance(minute);
    // Otherwise it would stay fresh for a year without an upstream.
    const now = Date.UTC(2026, 0, 1) + harness.time.monotonic;
    expect(harness.store.snapshots.get('KEY')?.confirmedAt).toBeLessThanOrEqual(now);
  });

  it('a read of a followed key does not end the request that waits for changes', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.time.advance(10 * second);
    const before = harness.latchkey.questions;
    const read = harness.sync.fetcher.fetch('press', 'KEY', 'refresh');
    await harness.time.advance(100);
    await read;
    expect(harness.latchkey.questions).toBe(before);
  });

  it('a refund stays in force if a read that was answered before it arrives after it', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.time.advance(10 * second);
    const before = harness.vendor.licenses.get('KEY');
    if (before === undefined) throw new Error('there is no license');
    harness.latchkey.set('KEY', { enabled: false });
    await harness.time.advance(second);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
    harness.vendor.loses = (what) =>
      what === 'verify'
        ? { outcome: 'applied', value: before, confirmedAt: harness.time.clock().now(), isCached: false }
        : null;
    const read = harness.sync.fetcher.fetch('press', 'KEY', 'refresh');
    await harness.time.advance(30);
    await read;
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
    harness.vendor.loses = () => null;
    await harness.time.advance(minute);
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { enabled: false } } });
  });

  it('uses of another agent are shown with the own uses, and each once', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.time.advance(10 * second);
    for (let round = 1; round <= 5; round += 1) {
      harness.latchkey.set('KEY', { uses: (usesOf(harness, 'KEY') ?? 0) + 1 });
      await harness.change('KEY', 'usage');
      await harness.time.advance(30 * second);
      expect(await harness.verify('KEY')).toMatchObject({ value: { license: { uses: 2 * round } } });
    }
    expect(usesOf(harness, 'KEY')).toBe(10);
  });
});

describe('an agent whose store was restored or copied', () => {
  it('asks what became of its changes before it sends anything, and counts nothing twice', async () => {
    using harness = await startPushingHarness(['KEY']);
    harness.latchkey.loses = (what) => (what === 'push' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    harness.latchkey.instead = (what) => (what === 'push' ? lostAnswer : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    await harness.writer.write('restore', {});
    harness.latchkey.instead = () => null;
    harness.latchkey.loses = () => null;
    harness.latchkey.asked.length = 0;
    await harness.restart();
    await harness.time.advance(5 * minute);
    expect(harness.latchkey.asked.filter((what) => what === 'known' || what === 'push')).toEqual([
      'known',
      'push',
    ]);
    expect(usesOf(harness, 'KEY')).toBe(2);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2, inferred: 0, uncertain: 0 });
    expect(await harness.verify('KEY')).toMatchObject({ value: { license: { uses: 2 } } });
    expect(harness.latchkey.rows.size).toBe(2);
  });

  it('takes another id when another process has used its number', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    const [[agent, row] = []] = harness.latchkey.rows;
    if (agent === undefined || row === undefined) throw new Error('nothing was pushed');
    harness.latchkey.rows.set(agent, { ...row, seq: row.seq + 1, body: 'of the other process' });
    await harness.change('KEY', 'usage');
    await harness.time.advance(5 * minute);
    expect(usesOf(harness, 'KEY')).toBe(2);
    expect(harness.latchkey.rows.size).toBe(2);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2, uncertain: 0 });
  });
});
