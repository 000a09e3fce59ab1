import { describe, expect, it } from 'vitest';
import type { Operation } from '../../src/domain/outbox/operation.ts';
import { upstreamEpoch } from '../../src/service/outbox/upstream-epoch.ts';
import { hidden, lostAnswer, refusedWith, type LatchkeyVendor } from '../support/harness/latchkey-vendor.ts';
import { minute, second, startLatchkeyHarness, type SyncHarness } from '../support/harness/sync-harness.ts';

const day = 1_440 * minute;

type Harness = SyncHarness & { latchkey: LatchkeyVendor };

const upstreamUses = ({ vendor }: SyncHarness, key: string) => vendor.licenses.get(key)?.uses;
const shown = async (harness: SyncHarness, key: string) => {
  const verified = await harness.verify(key);
  return verified.ok ? verified.value.license : null;
};
const newest = ({ store }: SyncHarness): Operation => {
  const operation = store.operations.get(String(allIds(store).at(-1)));
  if (operation === null) throw new Error('there is no operation');
  return operation;
};
const allIds = (store: SyncHarness['store']): string[] =>
  (['pending', 'in_flight', 'uncertain', 'delivered', 'inferred', 'conflicted', 'dead', 'cancelled'] as const)
    .flatMap((state) => store.operations.list(state, { limit: 1_000, offset: 0 }))
    .toSorted((one, other) => one.seq - other.seq)
    .map(({ id }) => id);

/** Makes the agent record changes that it cannot send yet. */
async function offline(harness: Harness, work: () => Promise<unknown>): Promise<void> {
  harness.sync.limiter.pause();
  await work();
}

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

describe('a revocation', () => {
  it('that the caller of an offline enable has not seen wins over the enable', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.latchkey.set('KEY', 'disable');
    await harness.time.advance(minute);
    expect(await shown(harness, 'KEY')).toMatchObject({ enabled: false });
    await offline(harness, () => harness.change('KEY', 'enable'));
    harness.latchkey.set('KEY', 'enable');
    harness.latchkey.set('KEY', 'disable');
    harness.sync.limiter.resume();
    await harness.time.advance(minute);
    expect(newest(harness).progress.state).toBe('conflicted');
    expect(harness.vendor.licenses.get('KEY')).toMatchObject({ enabled: false });
  });

  it('of the same caller does not stop its later enable', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.vendor.loses = (what) => (what === 'disable' ? lostAnswer : null);
    await harness.change('KEY', 'disable');
    await harness.time.advance(30);
    await harness.change('KEY', 'enable');
    harness.vendor.loses = () => null;
    await harness.time.advance(minute);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2, conflicted: 0 });
    expect(harness.vendor.licenses.get('KEY')).toMatchObject({ enabled: true });
  });

  it('by somebody else before the own disable stops a later enable', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.latchkey.instead = () => hidden;
    harness.latchkey.set('KEY', 'usage');
    await offline(harness, () => harness.change('KEY', 'disable'));
    harness.latchkey.set('KEY', 'disable');
    harness.vendor.loses = (what) => (what === 'disable' ? lostAnswer : null);
    harness.sync.limiter.resume();
    await harness.time.advance(50);
    await harness.change('KEY', 'enable');
    harness.vendor.loses = () => null;
    await harness.time.advance(minute);
    expect(newest(harness).progress.state).toBe('conflicted');
    expect(harness.vendor.licenses.get('KEY')).toMatchObject({ enabled: false });
  });

  it('is answered by the agent within seconds, and no older answer takes it back', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await harness.time.advance(minute);
    harness.vendor.latencyMs = 2 * second;
    await harness.change('KEY', 'usage');
    // The use is carried out before the refund, and its answer arrives after the refund was told.
    const stale = harness.vendor.licenses.get('KEY');
    harness.latchkey.set('KEY', 'refund');
    await harness.time.advance(3 * second);
    expect(stale).toMatchObject({ enabled: true });
    expect(await shown(harness, 'KEY')).toMatchObject({ enabled: false, uses: 1 });
  });
});

describe('an upstream that was restored', () => {
  it('gets again what was delivered to it, in order and under the same ids', async () => {
    using harness = await startLatchkeyHarness(['KEY', 'OTHER']);
    for (const trigger of ['usage', 'disable', 'enable', 'usage'] as const) {
      await harness.change('KEY', trigger);
      await harness.time.advance(second);
    }
    const sent = (kinds: readonly string[], from = 0): string[] =>
      harness.latchkey.keyed.slice(from).flatMap(({ id, kind }) => (kinds.includes(kind) ? [id] : []));
    const license = harness.vendor.licenses.get('OTHER');
    if (license === undefined) throw new Error('there is no license');
    harness.vendor.licenses.set('KEY', { ...license, licenseKey: 'KEY' });
    harness.latchkey.answers.clear();
    harness.latchkey.restore();
    await harness.time.advance(5 * minute);
    for (const kinds of [['usage'], ['disable', 'enable']])
      expect(sent(kinds, 4)).toEqual(sent(kinds).slice(0, 2));
    expect(upstreamUses(harness, 'KEY')).toBe(2);
    expect(await shown(harness, 'KEY')).toMatchObject({ uses: 2, enabled: true });
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 4, inferred: 0, pending: 0 });
  });

  it('that still has what was delivered answers from its store, and nothing counts twice', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    for (let use = 0; use < 450; use += 1) await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    harness.latchkey.restore();
    await harness.time.advance(5 * minute);
    expect(upstreamUses(harness, 'KEY')).toBe(450);
    expect(await shown(harness, 'KEY')).toMatchObject({ uses: 450 });
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 450, pending: 0 });
  });

  it('gets nothing that is too old to be known', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    const use = newest(harness);
    const finishedAt = use.createdAt - 30 * day;
    harness.store.operations.put({ ...use, progress: { state: 'delivered', finishedAt } });
    const sent = harness.latchkey.keyed.length;
    harness.latchkey.restore();
    await harness.time.advance(5 * minute);
    expect(harness.latchkey.keyed).toHaveLength(sent);
  });
});

describe('an upstream whose store was put back by hand', () => {
  it('gets again what it has lost, also if the changes of others have made its revisions as high as before', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    for (let use = 0; use < 2; use += 1) {
      await harness.change('KEY', 'usage');
      await harness.time.advance(second);
    }
    const license = harness.vendor.licenses.get('KEY');
    if (license === undefined) throw new Error('there is no license');
    harness.vendor.licenses.set('KEY', { ...license, uses: 0 });
    harness.latchkey.answers.clear();
    for (let use = 0; use < 3; use += 1) harness.latchkey.set('KEY', 'usage');
    await harness.time.advance(5 * minute);
    expect(upstreamUses(harness, 'KEY')).toBe(5);
    expect(await shown(harness, 'KEY')).toMatchObject({ uses: 5 });
    expect(harness.latchkey.keyed).toHaveLength(4);
  });

  it('gets everything again once an hour at most, whatever it forgets', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    for (let tenMinutes = 0; tenMinutes < 12; tenMinutes += 1) {
      harness.latchkey.answers.clear();
      await harness.time.advance(10 * minute);
    }
    expect(harness.latchkey.keyed.length).toBeLessThanOrEqual(4);
  });

  it('does not get again what a person has confirmed', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.vendor.instead = (what) => (what === 'usage' ? refusedWith('too_old_to_know') : null);
    await harness.change('KEY', 'usage');
    await harness.time.advance(second);
    harness.vendor.instead = () => null;
    const operationId = newest(harness).id;
    await harness.writer.write('decideOperation', { operationId, decision: 'confirm' });
    await harness.time.advance(5 * minute);
    harness.latchkey.restore();
    await harness.time.advance(5 * minute);
    expect(upstreamUses(harness, 'KEY')).toBe(0);
  });
});

describe('an upstream behind a gateway that removes the ids of changes', () => {
  it('gets no use again after a restore', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    harness.latchkey.hidesIds = true;
    await harness.change('KEY', 'usage');
    await harness.time.advance(5 * minute);
    harness.latchkey.restore();
    await harness.time.advance(5 * minute);
    expect(upstreamUses(harness, 'KEY')).toBe(1);
  });
});

describe('an enable that a restored upstream has lost', () => {
  it('does not undo a disable that was made after the restore', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    for (const trigger of ['disable', 'enable'] as const) {
      await harness.change('KEY', trigger);
      await harness.time.advance(second);
    }
    harness.latchkey.answers.clear();
    harness.latchkey.forgetDisables();
    harness.latchkey.set('KEY', 'disable');
    harness.latchkey.restore();
    await harness.time.advance(5 * minute);
    expect(harness.vendor.licenses.get('KEY')).toMatchObject({ enabled: false });
    expect(newest(harness).progress.state).toBe('conflicted');
  });
});

describe('an enable whose caller has seen nothing of the new history of a restored upstream', () => {
  it('does not undo a disable that was made after the restore', async () => {
    using harness = await startLatchkeyHarness(['KEY', 'OTHER']);
    harness.latchkey.set('KEY', 'disable');
    await harness.time.advance(minute);
    harness.latchkey.instead = () => hidden;
    harness.latchkey.forgetDisables();
    harness.latchkey.restore();
    // This shows the new history, but not the license.
    await harness.change('OTHER', 'usage');
    await harness.time.advance(second);
    await offline(harness, () => harness.change('KEY', 'enable'));
    harness.latchkey.set('KEY', 'enable');
    harness.latchkey.set('KEY', 'disable');
    harness.sync.limiter.resume();
    await harness.time.advance(minute);
    expect(newest(harness).progress.state).toBe('conflicted');
    expect(harness.vendor.licenses.get('KEY')).toMatchObject({ enabled: false });
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

  it('that hides /sync/v1 behind a page does not keep the agent from the upstream after an outage', async () => {
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

  it('that hides /sync/v1 behind a page is not taken for an outage', async () => {
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
