import type { Callers } from './callers.ts';
import type { SeededRandom } from './seeded-random.ts';
import { troubles } from './trouble.ts';
import type { TroubleName, World } from './world.ts';

/** The target of an aim: a world, the callers of its agent, and a license key. */
type Target = { world: World; callers: Callers; key: string };

/** Two troubles that meet: the second begins while the effects of the first last. */
export type Aim = {
  name: string;
  troubles: readonly TroubleName[];
  strike: (target: Target) => Promise<void>;
};

const hourMs = 3_600_000;
const kinds = ['usage', 'usage', 'decrease', 'disable', 'enable'] as const;

/** Advances so little that a request in flight usually stays in flight. */
async function soon({ world }: Target): Promise<void> {
  await world.pass(world.random.pick([0, 1, 50, 200, 1_000]));
}

async function make(name: TroubleName, { world, key }: Target): Promise<void> {
  await troubles[name].make?.(world, key);
}

function read({ world, key }: Target): void {
  const productId = world.machine.transaction.snapshots.get(key)?.productId;
  if (!world.agent.isDead && productId !== undefined) world.agent.sync.fetcher.refresh(productId, key);
}

function list({ world }: Target): void {
  if (!world.agent.isDead) world.agent.sync.coupons.refresh();
}

/** A change whose response is often lost. */
function changeInDoubt({ world, callers, key }: Target): void {
  world.network.change({ trouble: 0.8, away: null });
  callers.change(key, world.random.pick(kinds));
}

const aims: readonly [Aim, ...Aim[]] = [
  {
    name: 'clock and cache',
    troubles: ['cache', 'dates'],
    async strike(target) {
      const { world } = target;
      const { network, random } = world;
      const byMs = hourMs * random.pick([-48, 1, 48, 29 * 24, 60 * 24, 60 * 24]);
      network.change({
        caching: 1,
        cacheIsStubborn: true,
        isUndated: random.chance(0.3),
        away: null,
        trouble: 0,
      });
      world.jump(byMs);
      read(target);
      await world.pass(1_000);
      if (random.chance(0.3)) await world.restart();
      if (random.chance(0.5)) world.jump(-byMs);
      // An answer about something else tells the time, and leaves the key as the cache has shown it.
      network.change({ caching: random.pick([0, 1]), isUndated: random.chance(0.2) });
      list(target);
      await world.pass(1_000);
    },
  },
  {
    name: 'reload and read',
    troubles: ['products', 'renames', 'policy'],
    async strike(target) {
      read(target);
      target.callers.change(target.key, target.world.random.pick(kinds));
      await soon(target);
      await make(target.world.random.pick(['products', 'renames', 'renames', 'policy']), target);
      read(target);
      await soon(target);
      // Of a product whose key and secret change between two starts nobody could tell which it was.
      if (target.world.agent.isDead) await target.world.restart();
      await make(target.world.random.pick(['products', 'renames']), target);
    },
  },
  {
    name: 'restore and listing',
    troubles: ['restore', 'coupons'],
    async strike(target) {
      target.callers.createCoupon();
      if (target.world.random.chance(0.5)) target.world.makeBackup();
      list(target);
      await soon(target);
      await target.world.restore('in place');
      list(target);
      await soon(target);
    },
  },
  {
    name: 'copy and delivery',
    troubles: ['copy'],
    async strike(target) {
      target.world.makeBackup();
      changeInDoubt(target);
      read(target);
      await soon(target);
      await make('copy', target);
    },
  },
  {
    name: 'wait and listing',
    troubles: ['patience', 'coupons'],
    async strike(target) {
      const { world, callers } = target;
      callers.createCoupon();
      changeInDoubt(target);
      // A creation uncertain fails again and again, and then finds listings under way that are told to wait.
      for (let count = 0; count < 12; count += 1) {
        const isCalm = count >= 8;
        world.network.change(isCalm ? { trouble: 0, throttling: 0.5, longestWaitS: 8 } : { trouble: 0.8 });
        list(target);
        await world.pass(world.random.pick(isCalm ? [500, 3_000, 10_000] : [60_000, 300_000]));
      }
      world.network.change({ throttling: 0 });
    },
  },
  {
    name: 'crash and late answer',
    troubles: ['late_arrival'],
    async strike(target) {
      changeInDoubt(target);
      await soon(target);
      await target.world.restart();
      read(target);
    },
  },
  {
    name: 'gateway and removal',
    troubles: ['gateway', 'removal'],
    async strike(target) {
      await make('removal', target);
      read(target);
      await soon(target);
      await make('gateway', target);
      target.callers.change(target.key, target.world.random.pick(kinds));
      read(target);
    },
  },
  {
    name: 'person and lost answer',
    troubles: ['people'],
    async strike(target) {
      changeInDoubt(target);
      await soon(target);
      await make('people', target);
      read(target);
      await soon(target);
      await make('people', target);
    },
  },
  {
    name: 'full disk and answer',
    troubles: ['full', 'wait'],
    async strike(target) {
      changeInDoubt(target);
      read(target);
      await soon(target);
      target.world.faults.isFull = true;
      await target.world.pass(target.world.random.pick([500, 5_000]));
      if (target.world.random.chance(0.3)) await target.world.restart();
      target.world.faults.isFull = false;
    },
  },
  {
    name: 'failing step and crash',
    troubles: ['commit', 'wait'],
    async strike(target) {
      const { world, callers, key } = target;
      world.faults.afterCommit = world.random.pick(['keep', 'read']);
      callers.useOnce(key);
      await soon(target);
      if (world.random.chance(0.5)) await world.restart();
      callers.useOnce(key);
    },
  },
  {
    name: 'another address and lost answer',
    troubles: ['replacement'],
    async strike(target) {
      changeInDoubt(target);
      await soon(target);
      await make('replacement', target);
      read(target);
    },
  },
  {
    name: 'refusal and lost answer',
    troubles: ['refusals', 'poison'],
    async strike(target) {
      changeInDoubt(target);
      await soon(target);
      await make(target.world.random.pick(['refusals', 'poison']), target);
      target.callers.change(target.key, target.world.random.pick(kinds));
    },
  },
  {
    name: 'another writer and another spelling',
    troubles: ['others', 'spellings'],
    async strike(target) {
      read(target);
      target.callers.change(target.key, target.world.random.pick(kinds));
      await make('others', target);
      await soon(target);
      target.callers.verify(target.key);
      await make('others', target);
    },
  },
];

/** The aim of a seed. */
export function drawAim(random: SeededRandom): Aim {
  return random.pick(aims);
}
