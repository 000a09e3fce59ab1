import { queueOf, type Operation } from '../../../src/domain/outbox/operation.ts';
import { drawAim, type Aim } from './aim.ts';
import { simulatedStores, type SimulatedStoreName } from './stores.ts';
import { Callers } from './callers.ts';
import { checkAtRest, checkStep } from './invariants.ts';
import { longestBackoffMs, refreshMs } from './machine.ts';
import { quietMs, timeoutMs } from './network.ts';
import { SeededRandom } from './seeded-random.ts';
import type { Sabotage } from './sabotage.ts';
import { drawTroubles, troubles, type Trouble } from './trouble.ts';
import { noFaults } from './fault-profile.ts';
import { World, type TroubleName } from './world.ts';

/** After the upstream's return what waited for it must be delivered within this time, reconcile delay included, in ms. */
const livenessMs = 120_000;
const hourMs = 3_600_000;
const aPerson = { actor: null, requestId: null, idempotency: null };

export type SimulationOptions = {
  seed: number;
  steps: number;
  sabotage?: Sabotage | null;
  /** The troubles; null: the seed draws them. */
  troubles?: readonly TroubleName[] | null;
  /** Whether two troubles, drawn by the seed, meet again and again. */
  isAimed?: boolean;
  /** The store that is the upstream; null: the upstream speaks the specification. */
  store?: SimulatedStoreName | null;
};

/** Plays one seed; resolves to the violated invariant and the troubles, or null. */
export async function simulate({
  seed,
  steps,
  sabotage = null,
  troubles: chosen = null,
  isAimed = false,
  store = null,
}: SimulationOptions): Promise<string | null> {
  const random = new SeededRandom(seed ^ 0x5eed);
  const drawn = chosen ?? drawTroubles(random, isAimed ? 0.1 : 0.2);
  const aim = isAimed ? drawAim(random) : null;
  // The routes of a store spell each license key in one way: some of its answers do not spell it.
  const isPossible = (name: TroubleName): boolean => store === null || name !== 'spellings';
  const simulated = store === null ? undefined : simulatedStores[store];
  const all = new Set([...(aim?.troubles ?? []), ...drawn].filter(isPossible));
  using play = new Play({ seed, sabotage, store: simulated, troubles: [...all] }, aim);
  try {
    await play.begin();
    for (let step = 0; step < steps; step += 1) {
      await play.step();
      checkStep(play.world);
    }
    await play.rest();
    checkAtRest(play.world);
    return null;
  } catch (error) {
    const violation = error instanceof Error ? error.message : String(error);
    const aimed = aim === null ? '' : `, aimed: ${aim.name}`;
    return `${violation} [${[...play.world.troubles].join(' ')}${aimed}]`;
  }
}

/** The steps of a world, as its seed draws them. */
export class Play implements Disposable {
  readonly world: World;
  readonly callers: Callers;
  readonly #troubles: readonly Trouble[];
  readonly #aim: Aim | null;

  constructor(options: ConstructorParameters<typeof World>[0], aim: Aim | null = null) {
    this.#aim = aim;
    this.world = new World(options);
    this.callers = new Callers(this.world);
    this.#troubles = options.troubles.map((name) => troubles[name]);
  }

  async begin(): Promise<void> {
    for (const { begin } of this.#troubles) begin?.(this.world);
    await this.world.start();
    for (const key of this.world.keys) this.callers.verify(key);
    await this.world.pass(2_000);
  }

  async step(): Promise<void> {
    const { world, callers } = this;
    const { random } = world;
    if (world.agent.isDead) await world.restart();
    const key = random.pick(world.keys as [string, ...string[]]);
    const dice = random.fraction();
    if (dice < 0.06) callers.useOnce(key);
    else if (dice < 0.4) callers.change(key, 'usage');
    else if (dice < 0.5) callers.change(key, 'decrease');
    else if (dice < 0.54) callers.change(key, 'disable');
    else if (dice < 0.58) callers.change(key, 'enable');
    else if (dice < 0.64) callers.verify(key);
    else if (dice < 0.66) callers.createCoupon();
    else if (dice < 0.72) this.#changeWeather();
    else if (dice < 0.74) world.agent.die();
    else if (dice < 0.75) world.ledger.changeElsewhere(key, random.pick(['enable', 'refund']));
    else if (dice < 0.77) world.jump(hourMs * random.pick([-48, -1, 1, 48, 60 * 24]));
    else if (dice < 0.92) await this.#makeTrouble(key);
    await world.pass(random.pick([0, 10, 200, 1_000, 1_000, 5_000, 15_000, 60_000]));
    // The daemon does so every minute; here a jump is never forgotten by a crash in between.
    await world.unharmed(() => world.agent.markTime());
  }

  /** All troubles end; then only operations that a person must decide may stay in the outbox. */
  async rest(): Promise<void> {
    const { world } = this;
    const { faults, network, random } = world;
    // What is struck at the last moment shows whether its delivery comes too late.
    await this.#strike(random.pick(world.keys as [string, ...string[]]));
    Object.assign(faults, { crashes: 0, isFull: false, afterCommit: null });
    // A process may still die of what it has begun to write.
    await world.pass(0);
    const { poison } = network.faultProfile;
    network.faultProfile = { ...noFaults, poison };
    if (world.agent.isDead) await world.restart();
    for (const { heal } of this.#troubles) heal?.(world);
    // What was under way may yet bring a refusal of the credential; then a person resumes.
    await world.pass(2 * timeoutMs);
    const { state, pausedProducts, couponsPaused } = world.agent.sync.limiter.status();
    const isStopped = state === 'paused' || pausedProducts.length > 0 || couponsPaused;
    if (isStopped) await world.agent.control.resume(aPerson);
    await world.pass(Math.max(0, world.watch.notBefore - world.monotonic));
    const drained = (mayWait?: typeof waitsForItself) => (): boolean => {
      world.showCounts();
      return isDrained(world, mayWait);
    };
    await world.runUntil(drained(waitsForItself), livenessMs);
    await world.runUntil(drained(), longestBackoffMs + livenessMs);
    await world.pass(quietMs);
    // By then every key that is asked for has been read once more. A change that came back with its key may disable it again.
    for (const waitMs of world.behaviour.store === undefined ? [0] : [0, longestBackoffMs]) {
      world.showCounts();
      for (const key of world.keys) this.callers.verify(key);
      await world.pass(1.3 * refreshMs + waitMs);
    }
  }

  [Symbol.dispose](): void {
    this.world[Symbol.dispose]();
  }

  #changeWeather(): void {
    const { random, network } = this.world;
    network.change({
      away: random.chance(0.25) ? random.pick(['refused', 'lost_request']) : null,
      trouble: random.pick([0, 0.1, 0.4, 0.8]),
      unauthorized: random.chance(0.05) ? 0.2 : 0,
    });
  }

  async #strike(key: string): Promise<void> {
    const { world, callers } = this;
    if (this.#aim === null) return;
    if (world.agent.isDead) await world.restart();
    await this.#aim.strike({ world, callers, key });
  }

  async #makeTrouble(key: string): Promise<void> {
    const { world } = this;
    if (this.#aim !== null && world.random.chance(0.5)) return await this.#strike(key);
    const [first, ...others] = this.#troubles.flatMap(({ make }) => make ?? []);
    if (first !== undefined) await world.random.pick([first, ...others])(world, key);
  }
}

function isDrained(
  world: World,
  mayWait: (world: World, operation: Operation) => boolean = () => false,
): boolean {
  const { operations } = world.machine.transaction;
  const states = ['pending', 'in_flight', 'uncertain'] as const;
  const open = states.flatMap((state) => [...operations.withState(state)]);
  return open.every(
    (operation) =>
      world.isStuck(operation.subject) ||
      ('held' in operation.progress && operation.progress.held) ||
      mayWait(world, operation),
  );
}

/**
 * Whether the head of its queue waits because the upstream had answered it with a failure. That is the key's own
 * trouble, of which the upstream's return says nothing; it is waited for with the backoff.
 */
function waitsForItself({ machine, clock }: World, { subject, kind }: Operation): boolean {
  const head = machine.transaction.operations.head(subject, queueOf[kind]);
  if (head === null || head.nextAt === null || head.nextAt <= clock.monotonic()) return false;
  return !head.outage || /^HTTP \d/.test(head.lastError ?? '');
}
