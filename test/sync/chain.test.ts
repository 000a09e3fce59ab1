import { describe, expect, it } from 'vitest';
import { protocolOf } from '../../src/service/outbox/protocol.ts';
import { Chain, type Hop } from '../support/harness/chain-harness.ts';

const second = 1_000;
const minute = 60 * second;

/** The way to the hop above. */
function above({ link }: Hop): NonNullable<Hop['link']> {
  if (link === null) throw new Error('nothing is above the authority');
  return link;
}

/** Loses every other push's answer. */
function loseEveryOther(): (what: string) => boolean {
  let pushes = 0;
  return (what) => {
    if (what === 'push') pushes += 1;
    return what === 'push' && pushes % 2 === 1;
  };
}

describe('a chain of two agents below an authority', () => {
  it('a use at the lowest agent counts once at each hop, under the same id', async () => {
    using chain = await Chain.open();
    await chain.lowest.change('KEY', 'usage');
    const [operation] = chain.lowest.store.operations.shown('KEY');
    await chain.time.advance(10 * second);
    expect(await chain.uses('KEY')).toEqual([1, 1, 1]);
    const ids = [above(chain.lowest), above(chain.middle)].map(({ pushes }) =>
      pushes.flatMap((body) =>
        (JSON.parse(body) as { operations: { id: string }[] }).operations.map(({ id }) => id),
      ),
    );
    expect(ids).toEqual([[operation?.id], [operation?.id]]);
  });

  it('a refund at the authority is answered by the lowest agent within seconds, without a read', async () => {
    using chain = await Chain.open();
    for (const hop of [chain.lowest, chain.middle]) above(hop).asked.length = 0;
    await chain.refund('KEY');
    await chain.time.advance(3 * second);
    expect(await chain.lowest.verify('KEY')).toMatchObject({ enabled: false });
    expect([...above(chain.lowest).asked, ...above(chain.middle).asked]).not.toContain('verify');
  });

  it('lost answers on both ways count nothing twice', async () => {
    using chain = await Chain.open(['A', 'B']);
    above(chain.lowest).loses = loseEveryOther();
    above(chain.middle).loses = loseEveryOther();
    for (let round = 0; round < 10; round += 1) {
      await chain.lowest.change('A', 'usage');
      await chain.middle.change('A', 'usage');
      await chain.lowest.change('B', 'usage');
      await chain.time.advance(7 * second);
    }
    await chain.time.advance(10 * minute);
    expect(await chain.uses('A')).toEqual([20, 20, 20]);
    expect(await chain.uses('B')).toEqual([10, 10, 10]);
  });

  it('agents that are killed again and again count nothing twice', async () => {
    using chain = await Chain.open();
    above(chain.lowest).loses = loseEveryOther();
    above(chain.middle).loses = loseEveryOther();
    for (let round = 0; round < 12; round += 1) {
      await chain.lowest.change('KEY', 'usage');
      await chain.time.advance(15 + 13 * round);
      await (round % 3 === 0 ? chain.lowest : chain.middle).restart();
      await chain.middle.change('KEY', 'usage');
    }
    await chain.time.advance(10 * minute);
    expect(await chain.uses('KEY')).toEqual([24, 24, 24]);
  });

  it('while the way to the authority is down, changes from below are taken, answered, and delivered later', async () => {
    using chain = await Chain.open();
    above(chain.middle).isCut = true;
    const { confirmedAt: before } = await chain.lowest.verify('KEY');
    for (let use = 0; use < 5; use += 1) await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(30 * minute);
    expect(await chain.uses('KEY')).toEqual([0, 5, 5]);
    expect(chain.lowest.store.operations.depth()).toMatchObject({ delivered: 5, pending: 0, in_flight: 0 });
    const { confirmedAt: after } = await chain.lowest.verify('KEY');
    // The middle adds no grace: it was confirmed at most one wait after the way went down.
    expect((after ?? 0) - (before ?? 0)).toBeLessThan(minute);
    above(chain.middle).isCut = false;
    await chain.time.advance(20 * minute);
    expect(await chain.uses('KEY')).toEqual([5, 5, 5]);
    const { confirmedAt: last } = await chain.lowest.verify('KEY');
    expect(chain.time.monotonic + Date.UTC(2026, 0, 1) - (last ?? 0)).toBeLessThan(2 * minute);
  });

  it('a revocation at the middle is known below, and one from below is known at the authority', async () => {
    using chain = await Chain.open(['A', 'B']);
    await chain.middle.change('A', 'disable');
    await chain.lowest.change('B', 'disable');
    await chain.time.advance(5 * second);
    for (const hop of [chain.authority, chain.middle, chain.lowest]) {
      expect(await hop.verify('A')).toMatchObject({ enabled: false });
      expect(await hop.verify('B')).toMatchObject({ enabled: false });
    }
  });

  it('a use of a license that the middle confirmed too long ago is taken, and delivered', async () => {
    using chain = await Chain.open();
    above(chain.middle).isCut = true;
    await chain.time.advance(30 * minute);
    above(chain.lowest).isCut = true;
    await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(20 * minute);
    above(chain.lowest).isCut = false;
    await chain.time.advance(10 * minute);
    expect(chain.lowest.store.operations.depth()).toMatchObject({ delivered: 1, pending: 0, dead: 0 });
    above(chain.middle).isCut = false;
    await chain.time.advance(20 * minute);
    expect(await chain.uses('KEY')).toEqual([1, 1, 1]);
  });

  it('an enable of the lowest agent does not override a refund that it had not seen', async () => {
    using chain = await Chain.open();
    above(chain.lowest).isCut = true;
    await chain.refund('KEY');
    await chain.time.advance(15 * minute);
    await chain.lowest.change('KEY', 'enable');
    above(chain.lowest).isCut = false;
    await chain.time.advance(20 * minute);
    expect(chain.lowest.store.operations.depth()).toMatchObject({ conflicted: 1, pending: 0, in_flight: 0 });
    for (const hop of [chain.authority, chain.middle, chain.lowest])
      expect(await hop.verify('KEY')).toMatchObject({ enabled: false });
  });
});

describe('the protocol of an agent below an agent', () => {
  it('is plain while that of the agent above is plain, and changes by itself', async () => {
    using chain = await Chain.open();
    const plain = { protocol: 'plain', reconcileAfterMs: minute } as const;
    for (const hop of [chain.middle, chain.lowest]) await hop.writer.write('chooseProtocol', plain);
    await chain.lowest.writer.write('chooseProtocol', { ...plain, protocol: 'automatic' });
    await chain.lowest.restart();
    await chain.time.advance(10 * minute);
    expect([chain.middle, chain.lowest].map(({ store }) => protocolOf(store))).toEqual(['plain', 'plain']);
    await chain.middle.writer.write('chooseProtocol', { ...plain, protocol: 'automatic' });
    await chain.middle.restart();
    await chain.time.advance(10 * minute);
    expect([chain.middle, chain.lowest].map(({ store }) => protocolOf(store))).toEqual([
      'latchkey',
      'latchkey',
    ]);
    await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(10 * second);
    expect(await chain.uses('KEY')).toEqual([1, 1, 1]);
  });

  it('an agent that pushes is served although the agent above it speaks the plain protocol again', async () => {
    using chain = await Chain.open();
    await chain.middle.writer.write('chooseProtocol', { protocol: 'plain', reconcileAfterMs: minute });
    await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(minute);
    expect(await chain.uses('KEY')).toEqual([1, 1, 1]);
  });
});

describe('a chain with a restored store', () => {
  it('a middle that was restored gets what it has lost again, and the authority counts each use once', async () => {
    using chain = await Chain.open();
    await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(10 * second);
    const backup = chain.middle.backup();
    for (let use = 0; use < 3; use += 1) {
      await chain.lowest.change('KEY', 'usage');
      await chain.time.advance(10 * second);
    }
    // The authority has these uses already, but the backup of the middle does not know them.
    await chain.middle.restore(backup);
    await chain.time.advance(10 * minute);
    expect(await chain.uses('KEY')).toEqual([4, 4, 4]);
    expect(chain.middle.store.operations.depth()).toMatchObject({ pending: 0, in_flight: 0, uncertain: 0 });
  });

  it('changes that reached only the middle before it was restored are delivered', async () => {
    using chain = await Chain.open();
    const backup = chain.middle.backup();
    above(chain.middle).isCut = true;
    for (let use = 0; use < 3; use += 1) await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(minute);
    expect(await chain.uses('KEY')).toEqual([0, 3, 3]);
    await chain.middle.restore(backup);
    above(chain.middle).isCut = false;
    await chain.time.advance(30 * minute);
    expect(await chain.uses('KEY')).toEqual([3, 3, 3]);
  });

  it('a lowest agent that was restored counts nothing twice', async () => {
    using chain = await Chain.open();
    above(chain.lowest).isCut = true;
    await chain.lowest.change('KEY', 'usage');
    const backup = chain.lowest.backup();
    above(chain.lowest).isCut = false;
    await chain.time.advance(minute);
    await chain.lowest.restore(backup);
    await chain.time.advance(10 * minute);
    expect(await chain.uses('KEY')).toEqual([1, 1, 1]);
  });

  it('a middle with an empty store learns the keys from the agents below it', async () => {
    using chain = await Chain.open();
    await chain.lowest.change('KEY', 'usage');
    await chain.time.advance(10 * second);
    await chain.middle.restore(chain.emptyBackup);
    await chain.lowest.change('KEY', 'usage');
    // The restored agent sends nothing for a reconcile delay.
    await chain.time.advance(2 * minute);
    expect(await chain.uses('KEY')).toEqual([2, 2, 2]);
    await chain.refund('KEY');
    await chain.time.advance(5 * second);
    expect(await chain.lowest.verify('KEY')).toMatchObject({ enabled: false });
  });
});
