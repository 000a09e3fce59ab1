import {
  array,
  assert,
  asyncProperty,
  boolean,
  constant,
  constantFrom,
  integer,
  nat,
  oneof,
  option,
  record,
  tuple,
  type Arbitrary,
} from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LeaseTerms } from '../../../../src/domain/catalogue.ts';
import { at, type TestStore } from '../../../support/builders/store-builders.ts';
import { agentRole, authorityRole } from './roles.ts';
import { LeaseWorld, openLeaseStore, type Action, type Fate } from './world.ts';

const isFull = process.env['LATCHKEY_TEST_FULL'] === '1';
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const devices = 5;
const device = nat(devices - 1);

const terms: Arbitrary<LeaseTerms> = record({
  seats: oneof(
    { weight: 5, arbitrary: integer({ min: 1, max: 3 }) },
    { weight: 1, arbitrary: constant(null) },
  ),
  holdMs: constantFrom(0, 10 * day, 90 * day),
  termMs: constantFrom(5 * minute, day, 30 * day, 30 * day, 90 * day),
  refreshMs: constantFrom(minute, day),
  showsEmail: constant(false),
});

const fate: Arbitrary<Fate> = oneof(
  { weight: 7, arbitrary: constant<Fate>('arrives') },
  { weight: 3, arbitrary: constantFrom<Fate>('request lost', 'answer lost', 'answer late') },
);

const uses = oneof(
  record({ recorded: integer({ min: 1, max: 3 }), returned: nat(1) }),
  record({ recorded: constant(0), returned: integer({ min: 1, max: 2 }) }),
);

const mostly = (value: boolean): Arbitrary<boolean> =>
  oneof({ weight: 3, arbitrary: constant(value) }, { weight: 1, arbitrary: constant(!value) });

const ask = record({
  do: constant('ask' as const),
  device,
  isAsked: mostly(true),
  replaces: option(device, { freq: 1 }),
  fate,
});

/** A device takes over the seat of a device that has not renewed for two days. */
const takeOver: Arbitrary<Action[]> = record({ device, replaces: nat(2) }).map((chosen) => [
  { do: 'pass', ms: 2 * day },
  { do: 'want', device: chosen.device, wanted: 'active' },
  { do: 'ask', isAsked: true, fate: 'arrives', ...chosen },
]);

const always: readonly { weight: number; arbitrary: Arbitrary<Action> }[] = [
  { weight: 30, arbitrary: ask },
  {
    weight: 8,
    arbitrary: record({
      do: constant('pass' as const),
      ms: constantFrom(
        1,
        second,
        second,
        10 * minute,
        10 * minute,
        12 * hour,
        2 * day,
        2 * day,
        11 * day,
        31 * day,
      ),
    }),
  },
  { weight: 6, arbitrary: record({ do: constant('use' as const), device, uses }) },
  {
    weight: 5,
    arbitrary: record({
      do: constant('want' as const),
      device,
      wanted: constantFrom('active' as const, 'ended' as const),
    }),
  },
  { weight: 4, arbitrary: record({ do: constant('replay' as const), index: nat(), isHeard: boolean() }) },
  { weight: 3, arbitrary: record({ do: constant('hear late' as const), index: nat() }) },
  {
    weight: 3,
    arbitrary: record({
      do: constant('operate' as const),
      device,
      name: oneof(
        { weight: 4, arbitrary: constant('endActivation' as const) },
        { weight: 1, arbitrary: constant('blockActivation' as const) },
      ),
    }),
  },
  { weight: 2, arbitrary: record({ do: constant('enable' as const), isEnabled: mostly(true) }) },
  { weight: 1, arbitrary: record({ do: constant('terms' as const), terms }) },
];

const restores: typeof always = [
  { weight: 2, arbitrary: record({ do: constant('copy holder' as const), device }) },
  { weight: 2, arbitrary: record({ do: constant('restore holder' as const), device }) },
  { weight: 1, arbitrary: constant({ do: 'back up issuer' as const }) },
  { weight: 1, arbitrary: constant({ do: 'restore issuer' as const }) },
];

/** Plays random actions, and lets everything arrive at the end. */
function histories(store: TestStore, action: Arbitrary<Action>, role = authorityRole) {
  const step = oneof({ weight: 30, arbitrary: tuple(action) }, { weight: 1, arbitrary: takeOver });
  const steps = array(step, { minLength: 20, maxLength: 100, size: 'max' });
  return asyncProperty(terms, steps, async (first, played) => {
    const world = new LeaseWorld(store, devices, role);
    await world.act({ do: 'terms', terms: first });
    for (const each of played.flat()) await world.act(each);
    await world.comeToRest();
  });
}

/** Two copies of the state of one device, each of which renews once a day, in any order. */
function copies(store: TestStore) {
  const days = array(record({ firstAsks: nat(1), fates: tuple(fate, fate) }), {
    minLength: 30,
    maxLength: 30,
  });
  return asyncProperty(days, async (played) => {
    const world = new LeaseWorld(store, 2);
    await world.act({ do: 'terms', terms: { seats: 1, holdMs: 0 } });
    const asks = { do: 'ask', isAsked: true, replaces: null } as const;
    await world.act({ ...asks, device: 0, fate: 'arrives' });
    world.copy(0, 1);
    for (const { firstAsks, fates } of played) {
      await world.act({ do: 'pass', ms: day });
      for (const [turn, each] of fates.entries()) {
        const copy = (firstAsks + turn) % 2;
        await world.act({ ...asks, device: copy, fate: each });
        // A holder repeats what was not answered, and goes on after a challenge.
        for (let left = 3; left > 0 && world.holders[copy]?.hasSomethingToSay === true; left -= 1) {
          await world.act({ ...asks, device: copy, fate: 'arrives' });
        }
        const { document } = world.holders[copy]?.held ?? {};
        expect(document?.kind === 'lease' && document.expiresAt - world.now).toBeGreaterThan(29 * day);
      }
    }
    const [row] = world.rows();
    expect(row?.copiedAt ?? Infinity).toBeLessThanOrEqual(at + 30 * day);
  });
}

describe('leases of several devices of one license', () => {
  let store: TestStore;
  beforeAll(() => {
    store = openLeaseStore();
  });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
  });

  it('the laws of seats, uses and order hold if requests and answers are lost, repeated, late and replayed', async () => {
    await assert(histories(store, oneof(...always)), { numRuns: isFull ? 2_000 : 50 });
  });

  it('the laws of seats, uses and order hold if holders and the issuer are restored as well', async () => {
    await assert(histories(store, oneof(...always, ...restores)), { numRuns: isFull ? 2_000 : 50 });
  });

  it('the laws hold at an agent, and no lease is longer than the license is known', async () => {
    await assert(histories(store, oneof(...always), agentRole), { numRuns: isFull ? 500 : 20 });
  });

  it('two copies of a device are marked within one lease term, and neither is cut off', async () => {
    await assert(copies(store), { numRuns: isFull ? 100 : 5 });
  });
});
