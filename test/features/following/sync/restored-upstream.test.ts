import { describe, expect, it } from 'vitest';
import { newest, offline, shown, upstreamUses } from '../../../support/harness/keyed-harness.ts';
import { hidden, lostAnswer, refusedWith } from '../../../support/harness/latchkey-vendor.ts';
import { minute, second, startLatchkeyHarness } from '../../../support/harness/sync-harness.ts';

const day = 1_440 * minute;

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

  it('that an agent in the middle saw after it had lost its state stops an enable from below', async () => {
    using harness = await startLatchkeyHarness(['KNOWN', 'KEY'], {}, ['KNOWN']);
    harness.latchkey.set('KEY', 'disable');
    expect(await shown(harness, 'KEY')).toMatchObject({ enabled: false });
    await harness.enableFromBelow('e', 'KEY', 0);
    await harness.time.advance(minute);
    expect(newest(harness)).toMatchObject({ id: 'e', progress: { state: 'conflicted' } });
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

  it('does not change the count that callers see while it gets again what was delivered', async () => {
    using harness = await startLatchkeyHarness(['KEY']);
    for (let use = 0; use < 3; use += 1) await harness.change('KEY', 'usage');
    await harness.time.advance(minute);
    harness.latchkey.restore();
    harness.vendor.latencyMs = second;
    const seen = new Set<number | undefined>();
    while (harness.latchkey.keyed.length < 6) {
      await harness.time.advance(second / 2);
      seen.add((await shown(harness, 'KEY'))?.uses);
    }
    expect([...seen]).toEqual([3]);
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
