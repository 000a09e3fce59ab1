import type { License } from '../../../src/domain/license.ts';
import type { LicenseOperationKind } from '../../../src/domain/operation.ts';
import type { Outcome } from '../../../src/domain/outcome.ts';
import { laneOf } from '../../../src/domain/operation.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import { VirtualTime } from '../../support/virtual-clock.ts';
import { checkAtRest, checkStep, type History } from './invariants.ts';
import { SeededRandom } from './seeded-random.ts';
import { Machine, SimulatedAgent, type AgentOptions, type Mutation } from './simulated-agent.ts';
import { SimulatedUpstream, timeoutMs } from './simulated-upstream.ts';

/** After the upstream's return the outbox must be empty within this time, fence included, in ms. */
const livenessMs = 120_000;

export type SimulationOptions = { seed: number; steps: number; mutation?: Mutation | null };

/** Plays one seed; resolves to what was violated, or null. */
export async function simulate({ seed, steps, mutation = null }: SimulationOptions): Promise<string | null> {
  using world = new World(seed, mutation);
  try {
    await world.begin();
    for (let step = 0; step < steps; step += 1) {
      await world.step();
      checkStep(world);
    }
    await world.rest();
    checkAtRest(world);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** One machine with an agent, one upstream, the network between them, and what callers were told. */
export class World implements Disposable {
  readonly random: SeededRandom;
  readonly machine: Machine = new Machine();
  readonly options: AgentOptions;
  readonly upstream: SimulatedUpstream;
  readonly keys: readonly string[];
  readonly initialUses: Map<string, number> = new Map();
  readonly history: History = {
    answered: new Map(),
    issued: new Map(),
    said: new Map(),
    answers: 0,
    ranks: new Map(),
    coupons: [],
    once: new Map(),
    broken: [],
  };
  agent: SimulatedAgent;
  /** Whether other programs change the counts of these keys too. */
  readonly hasOthers: boolean;
  readonly #time = new VirtualTime();
  #clock: VirtualClock;
  /** Its own, so that what waits by it goes with it. */
  readonly #forEver: AbortSignal = new AbortController().signal;
  #couponCount = 0;

  constructor(seed: number, mutation: Mutation | null) {
    this.random = new SeededRandom(seed);
    this.hasOthers = this.random.chance(0.4);
    this.options = {
      writers: this.hasOthers ? 'many' : 'single',
      onDoubt: this.random.chance(0.8) ? 'infer' : 'hold',
      lanes: this.random.between(1, 4),
      crashes: this.random.pick([0, 0.002, 0.02]),
      mutation,
    };
    const { operations } = this.machine.transaction;
    this.upstream = new SimulatedUpstream(
      this.#time.clock(),
      this.random,
      (licenseKey, kind) => operations.head(licenseKey, laneOf[kind])?.seq ?? 0,
    );
    this.keys = Array.from({ length: this.random.between(1, 4) }, (_, index) => `KEY-${index}`);
    this.#clock = this.#time.clock();
    this.agent = this.#process();
  }

  get clock(): VirtualClock {
    return this.#clock;
  }

  async begin(): Promise<void> {
    for (const key of this.keys) {
      const uses = this.random.between(0, 3);
      this.initialUses.set(key, uses);
      this.upstream.add(key, uses);
    }
    await this.#startAgent();
    await this.#quietly();
    for (const key of this.keys) void this.#verify(key);
    await this.#time.advance(2_000);
  }

  async step(): Promise<void> {
    if (this.agent.isDead) await this.#restart();
    const key = this.random.pick(this.keys as [string, ...string[]]);
    const dice = this.random.draw();
    if (dice < 0.06) void this.#useOnce(key);
    else if (dice < 0.4) void this.#change(key, 'usage');
    else if (dice < 0.5) void this.#change(key, 'decrease');
    else if (dice < 0.54) void this.#change(key, 'disable');
    else if (dice < 0.58) void this.#change(key, 'enable');
    else if (dice < 0.66) void this.#verify(key);
    else if (dice < 0.68) void this.#createCoupon();
    else if (dice < 0.76) this.#weather();
    else if (dice < 0.78) this.agent.die();
    else if (dice < 0.8) this.#elsewhere(key);
    else if (dice < 0.82) this.#jump();
    await this.#time.advance(this.#pause());
    // The daemon does so every minute; here a jump is never forgotten by a crash in between.
    await this.#unharmed(() => this.agent.markTime());
  }

  /** Everything heals; the outbox must empty itself but for what a person must decide. */
  async rest(): Promise<void> {
    this.upstream.trouble = 0;
    this.upstream.away = null;
    this.upstream.unauthorized = 0;
    this.options.crashes = 0;
    if (this.agent.isDead) await this.#restart();
    // What was under way may yet bring a refusal of the credential; then a person resumes.
    await this.#time.advance(2 * timeoutMs);
    if (this.agent.sync.uplink.refusedCredentials().length > 0) this.agent.sync.uplink.resume();
    const isDrained = (): boolean => {
      const { operations } = this.machine.transaction;
      const { pending, in_flight: inFlight } = operations.depth();
      const open = operations
        .withState('uncertain')
        .some(({ progress }) => 'held' in progress && !progress.held);
      return pending + inFlight === 0 && !open;
    };
    await this.#time.runUntil(isDrained, livenessMs);
    await this.#time.advance(timeToForget);
  }

  [Symbol.dispose](): void {
    this.agent.die();
    this.machine[Symbol.dispose]();
  }

  #process(): SimulatedAgent {
    const { machine, random, options, history } = this;
    return new SimulatedAgent({
      machine,
      upstream: timed(this.upstream, this.#clock),
      clock: this.#clock,
      random,
      options,
      onObserved: ({ licenseKey, enabled }) => {
        history.answers += 1;
        history.said.set(licenseKey, enabled);
      },
    });
  }

  async #startAgent(): Promise<void> {
    await this.#unharmed(() => this.agent.start());
  }

  /** No crash strikes meanwhile. */
  async #unharmed(act: () => Promise<void>): Promise<void> {
    if (this.agent.isDead) return;
    const crashes = this.options.crashes;
    this.options.crashes = 0;
    await act();
    this.options.crashes = crashes;
  }

  async #restart(): Promise<void> {
    await this.#time.advance(this.random.pick([1, 500, 20_000]));
    // A process that is stopped while the clock shows what nobody believes cannot know better afterwards.
    if (this.#clock.isUnbelieved) this.history.ranks.clear();
    this.#clock = this.#clock.restarted(this.agent.remembered());
    this.agent = this.#process();
    await this.#startAgent();
  }

  /** Lets what was begun come to an end on a good day. */
  async #quietly(): Promise<void> {
    await this.#time.advance(10);
  }

  async #change(key: string, trigger: LicenseOperationKind): Promise<void> {
    const name = `${key} ${trigger}`;
    const { issued, answered } = this.history;
    issued.set(name, (issued.get(name) ?? 0) + 1);
    const reach = { accountId: 'default', productKey: 'product' };
    const request = { reach, licenseKey: key, trigger, idempotency: null, waitMs: 0 };
    const answer = await this.agent.licensing.change(request, this.#forEver);
    if (answer.ok) answered.set(name, (answered.get(name) ?? 0) + 1);
  }

  /** A use under an idempotency key, often one that was asked for before: also by a process that died since. */
  async #useOnce(key: string): Promise<void> {
    const { once, issued, answered } = this.history;
    const id = `${key} ${this.random.between(0, 5)}`;
    const name = `${key} usage`;
    if (!once.has(id)) {
      once.set(id, null);
      issued.set(name, (issued.get(name) ?? 0) + 1);
    }
    const reach = { accountId: 'default', productKey: 'product' };
    const idempotency = { credential: 'product', key: id, fingerprint: id };
    const request = { reach, licenseKey: key, trigger: 'usage', idempotency, waitMs: 0 } as const;
    const answer = await this.agent.licensing.change(request, this.#forEver);
    if (!answer.ok) return;
    const given = JSON.stringify(answer.value.license);
    const before = once.get(id) ?? null;
    if (before === null) answered.set(name, (answered.get(name) ?? 0) + 1);
    else if (before !== given) this.history.broken.push(`invariant 7: ${id}: ${before}, then ${given}`);
    once.set(id, given);
  }

  async #verify(key: string): Promise<void> {
    await this.agent.licensing.verify({ accountId: 'default', productKey: 'product' }, key, this.#forEver);
  }

  async #createCoupon(): Promise<void> {
    this.#couponCount += 1;
    const code = `CODE-${this.#couponCount}`;
    const rest = { startAt: null, endAt: null, minimumPurchaseAmount: null, usageLimit: null, notes: null };
    const discount = { type: 'percent', percentOff: 20 } as const;
    const terms = { ...rest, scope: { type: 'multi' }, discount, code } as const;
    const created = await this.agent.couponing.create('default', terms, null, this.#forEver);
    if (created.ok) this.history.coupons.push(code);
  }

  #weather(): void {
    const dice = this.random.draw();
    this.upstream.away = dice < 0.25 ? this.random.pick(['refused', 'lost_request']) : null;
    this.upstream.trouble = this.random.pick([0, 0.1, 0.4, 0.8]);
    this.upstream.unauthorized = this.random.chance(0.05) ? 0.2 : 0;
  }

  #elsewhere(key: string): void {
    if (this.random.chance(0.2)) this.upstream.changeElsewhere(key, this.random.pick(['enable', 'refund']));
    else if (this.hasOthers) this.upstream.changeElsewhere(key, this.random.pick(['usage', 'decrease']));
  }

  #jump(): void {
    const hour = 3_600_000;
    this.#clock.jumpWall(this.random.pick([-48 * hour, -hour, hour, 48 * hour, 60 * 24 * hour]));
  }

  #pause(): number {
    return this.random.pick([0, 10, 200, 1_000, 1_000, 5_000, 15_000, 60_000]);
  }
}

/** After this time the last late request has arrived. */
const timeToForget = 20_000;

/** The upstream as a process sees it: its answers tell the time. */
function timed(upstream: SimulatedUpstream, clock: VirtualClock): SimulatedUpstream {
  return new Proxy(upstream, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'verify' && name !== 'change') return value.bind(target) as unknown;
      return async (...parameters: unknown[]) => {
        const outcome = (await value.apply(target, parameters)) as Outcome<License>;
        if (outcome.outcome === 'applied') clock.learn(target.now());
        return outcome;
      };
    },
  });
}
