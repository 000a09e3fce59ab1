import { SeededRandom } from '../seeded-random.ts';
import { longestBackoffMs, refreshMs } from '../machine.ts';
import { quietMs, timeoutMs } from '../network.ts';
import { isOpen, waitsForCoupon } from './coupon-invariants.ts';
import { addSharedCoupon, askForCoupons } from './coupons.ts';
import { askFromDevices } from './ends.ts';
import { checkLatchkeyAtRest, checkLatchkeyStep } from './invariants.ts';
import { calm } from './network.ts';
import type { OperationRow, Site } from './site.ts';
import { drawLatchkeyTroubles, latchkeyTroubles } from './trouble.ts';
import { type LatchkeyTroubleName, LatchkeyWorld, type LatchkeySabotage } from './world.ts';

/** After the upstream's return what waited for it must be delivered within this time, in ms. */
const livenessMs = 120_000;
const aPerson = { actor: null, requestId: null, idempotency: null };

export type LatchkeySimulation = {
  seed: number;
  steps: number;
  sabotage?: LatchkeySabotage | null;
  /** The troubles; null: the seed draws them. */
  troubles?: readonly LatchkeyTroubleName[] | null;
  /** Called before the world of a seed that fails is gone. */
  onEnd?: (world: LatchkeyWorld) => void;
};

/** Plays one seed against an upstream that is a Latchkey; resolves to the violated invariant and the troubles, or null. */
export async function simulateLatchkey({
  seed,
  steps,
  sabotage = null,
  troubles = null,
  onEnd,
}: LatchkeySimulation): Promise<string | null> {
  const drawn = troubles ?? drawLatchkeyTroubles(new SeededRandom(seed ^ 0x5eed));
  using world = new LatchkeyWorld({ seed, sabotage, troubles: drawn });
  const play = new LatchkeyPlay(world);
  try {
    await play.begin();
    for (let step = 0; step < steps; step += 1) {
      await play.step();
      checkLatchkeyStep(world);
    }
    await play.rest();
    checkLatchkeyAtRest(world);
    return null;
  } catch (error) {
    onEnd?.(world);
    const violation = error instanceof Error ? error.message : String(error);
    return `${violation} [${drawn.join(' ')}]`;
  }
}

/** Plays the seeds, and returns one line for each that breaks the promise, with the command that replays the seed. */
export async function playLatchkeySeeds({
  from,
  seeds,
  steps,
}: {
  from: number;
  seeds: number;
  steps: number;
}): Promise<string[]> {
  const violations: string[] = [];
  for (let seed = from; seed < from + seeds; seed += 1) {
    const violation = await simulateLatchkey({ seed, steps });
    const replay = `npm run simulate -- --latchkey --from ${seed} --seeds 1 --steps ${steps}`;
    if (violation !== null) violations.push(`${violation} (replay with: ${replay})`);
  }
  return violations;
}

/** The steps of a world, as its seed draws them. */
class LatchkeyPlay {
  readonly #world: LatchkeyWorld;

  constructor(world: LatchkeyWorld) {
    this.#world = world;
  }

  async begin(): Promise<void> {
    const world = this.#world;
    await world.begin();
    for (const name of world.troubles) await latchkeyTroubles[name].begin?.(world);
    if (world.troubles.has('coupons')) await addSharedCoupon(world);
  }

  async step(): Promise<void> {
    const world = this.#world;
    const { random } = world;
    for (const site of world.sites) if (site.agent.isDead) await site.restart();
    const site = random.pick(world.sites as [Site, ...Site[]]);
    const key = random.pick([...world.keys.keys()] as [string, ...string[]]);
    const dice = random.fraction();
    if (dice < 0.4) site.change(key, 'usage');
    else if (dice < 0.5) site.change(key, 'decrease');
    else if (dice < 0.54) site.change(key, 'disable');
    else if (dice < 0.58) site.change(key, 'enable');
    else if (dice < 0.64) site.verify(key);
    else if (dice < 0.72) this.#changeWeather();
    else if (dice < 0.75) site.agent.die();
    else if (dice < 0.92) await this.#makeTrouble(site, key);
    if (world.troubles.has('coupons')) await askForCoupons(world, site);
    await world.pass(random.pick([0, 10, 200, 1_000, 1_000, 5_000, 15_000, 60_000]));
  }

  /** All troubles end; then nothing may stay in an outbox but what a person must decide. */
  async rest(): Promise<void> {
    const world = this.#world;
    const { faults, networks, troubles } = world;
    Object.assign(faults, { crashes: 0, isFull: false });
    await world.pass(0);
    const latestMs = Math.max(...networks.map(({ weather }) => weather.latestMs));
    // Changes are delivered also while a gateway hides what agents follow.
    for (const network of networks)
      network.weather = { ...calm, latestMs, gateway: troubles.has('gateway') ? 'missing' : null };
    for (const site of world.sites) if (site.agent.isDead) await site.restart();
    for (const name of troubles) await latchkeyTroubles[name].heal?.(world);
    await world.pass(2 * timeoutMs);
    for (const { agent } of world.sites) {
      const { state, pausedProducts, couponsPaused } = agent.sync.limiter.status();
      const isRefused = pausedProducts.length > 0 || (couponsPaused && troubles.has('coupons'));
      if (state === 'paused' || isRefused) await agent.control.resume(aPerson);
    }
    await this.#drain();
    world.changeWeather({ gateway: null });
    // What is late has arrived by then.
    await world.pass(quietMs + latestMs);
    for (const site of world.sites) for (const key of world.keys.keys()) site.verify(key);
    // An agent in the middle comes first, so that the agents below read what it has read.
    for (const { agent } of troubles.has('coupons') ? world.sites : []) {
      agent.sync.coupons.refresh();
      await world.pass(timeoutMs);
    }
    await world.pass(1.3 * refreshMs);
    if (troubles.has('ends')) await askFromDevices(world);
  }

  async #drain(): Promise<void> {
    const world = this.#world;
    const { time, sites, troubles } = world;
    // An agent in the middle that was put back may know less than the agent below until it reads a key again.
    const withinMs = livenessMs + longestBackoffMs + (troubles.has('chain') ? 2 * refreshMs : 0);
    await time
      .runUntil(() => sites.every((site) => waitingAt(world, site).length === 0), withinMs)
      .catch((error: unknown) => {
        const waiting = sites
          .flatMap((site) => waitingAt(world, site))
          .map(({ kind, state, lastError }) => `${kind} ${state} ${lastError}`);
        throw new Error(
          `outbox: ${String(error)}: ${waiting.length} wait: ${waiting.slice(0, 3).join(', ')}`,
        );
      });
  }

  #changeWeather(): void {
    const { random, networks } = this.#world;
    random.pick(networks as [(typeof networks)[0]]).change({
      away: random.chance(0.25) ? random.pick(['refused', 'lost_request']) : null,
      trouble: random.pick([0, 0.1, 0.4, 0.8]),
      unauthorized: random.chance(0.05) ? 0.2 : 0,
    });
  }

  async #makeTrouble(site: Site, key: string): Promise<void> {
    const world = this.#world;
    const [first, ...others] = [...world.troubles].flatMap((name) => latchkeyTroubles[name].make ?? []);
    if (first !== undefined) await world.random.pick([first, ...others])(world, site, key);
  }
}

/** What is not delivered, but for orders that use a coupon whose creation waits for a person. */
function waitingAt(world: LatchkeyWorld, site: Site): OperationRow[] {
  const operations = site.operations();
  return operations.filter((each) => isOpen(each) && !waitsForCoupon(world, operations, each));
}
