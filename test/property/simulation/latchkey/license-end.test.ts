import { describe, expect, test } from 'vitest';
import { Chain, clocks, minute, table } from './licensed-chain.ts';
import { freshness } from '../machine.ts';

describe.each(Object.keys(clocks))('with the clock of agents and devices %s', (clock) => {
  test('authority, agents and holders of leases let a license in until its end and its graces, to the millisecond, and not beyond', async () => {
    for (const each of table.filter((row) => row.clock === clock)) {
      using chain = new Chain(each);
      try {
        await chain.begin();
        const { graceMs } = chain;
        const limits = [0, graceMs, graceMs + 2 * minute, freshness.expiryGraceMs];
        if (each.end === 'none' || each.isDisabled) limits.splice(1);
        const instants = limits.flatMap((ms) => [ms, ms + 1]).toSorted((one, other) => one - other);
        for (const instant of new Set(instants)) if (await chain.until(instant)) await chain.checkAll();
      } catch (error) {
        throw new Error(JSON.stringify(each), { cause: error });
      }
      expect(chain.world.broken).toEqual([]);
    }
  });
});

test.each(['online', 'offline', 'silent'] as const)(
  'a license that has ended stays ended after a restart of agents whose clocks were set back (%s)',
  async (connection) => {
    using chain = new Chain({ end: 'near', isDisabled: false, connection, clock: 'back' });
    await chain.begin();
    await chain.until(freshness.expiryGraceMs + 1);
    for (const site of chain.world.sites) {
      await site.agent.markTime();
      await site.restart();
    }
    await chain.checkAll();
    for (const site of chain.world.sites)
      expect(await chain.verify(site)).toMatchObject({ license: { enabled: false, status: 'expired' } });
  },
);
