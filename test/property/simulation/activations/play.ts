import { LemonSqueezyStore } from '../../../../src/features/sandbox/stores/lemonsqueezy.ts';
import { textOf } from '../../../../src/features/sandbox/stores/stand-in.ts';
import { VirtualTime, type VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { freshness, Machine, refreshMs } from '../machine.ts';
import { timeoutMs } from '../network.ts';
import { SeededRandom } from '../seeded-random.ts';
import { ActivationAgent, storeId, type Told } from './agent.ts';
import { ActivationNetwork } from './network.ts';

/** A program that activates its license key until it has an instance, and then validates or gives it back. */
type Program = { name: string; key: string; instance: string | null; isWaiting: boolean };

/** When everything is well, what was wanted before must be done within this time, in ms. */
const livenessMs = 600_000;

/**
 * Plays one seed of an agent of Lemon Squeezy, with outages, lost answers and kills. Resolves to the law that was broken, or
 * null. The laws: no program is told a no that the store has not said, nor a yes that is older than the grace. No instance is
 * given to two activations. With an API key, no seat is taken that no program knows. What a program gave back is free.
 */
export async function simulateActivations({
  seed,
  steps,
}: {
  seed: number;
  steps: number;
}): Promise<string | null> {
  using play = new Play(seed);
  try {
    await play.begin();
    for (let step = 0; step < steps; step += 1) await play.step();
    await play.rest();
    return play.broken;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

class Play implements Disposable {
  broken: string | null = null;
  readonly #random: SeededRandom;
  readonly #time = new VirtualTime();
  readonly #machine = new Machine();
  readonly #outside: VirtualClock = this.#time.clock();
  readonly #store: LemonSqueezyStore;
  readonly #network: ActivationNetwork;
  readonly #programs: readonly Program[];
  readonly #apiKey: string | null;
  #clock: VirtualClock = this.#time.clock();
  #agent: ActivationAgent;
  #ended = Promise.withResolvers<null>();
  #crashes = 0;
  /** By license key and instance: when the store last found it good, and whether it ever did not. */
  readonly #good = new Map<string, number>();
  readonly #bad = new Set<string>();
  /** The instances that programs were told, by name, and those that they gave back. */
  readonly #told = new Map<string, string>();
  readonly #given = new Set<string>();
  /** The instances that programs wanted to give back, whether they were told that it is done or not. */
  readonly #wanted = new Set<string>();

  constructor(seed: number) {
    const random = new SeededRandom(seed);
    this.#random = random;
    this.#store = new LemonSqueezyStore([storeId], { now: () => this.#outside.now() });
    this.#apiKey = random.chance(0.7) ? this.#store.apiKey : null;
    this.#network = new ActivationNetwork(this.#store, this.#outside, random);
    this.#programs = Array.from({ length: random.between(1, 4) }, (_, index) => ({
      name: `program-${index}`,
      key: `KEY-${index % 2}`,
      instance: null,
      isWaiting: false,
    }));
    for (const licenseKey of ['KEY-0', 'KEY-1']) this.#store.sell({ licenseKey, limit: 10_000 });
    this.#watchStore();
    this.#agent = this.#newAgent();
  }

  async begin(): Promise<void> {
    await this.#agent.start();
    await this.#pass(1_000);
  }

  async step(): Promise<void> {
    const random = this.#random;
    if (this.#agent.isDead) await this.#restart();
    const program = random.pick(this.#programs as [Program, ...Program[]]);
    const dice = random.fraction();
    if (dice < 0.6) this.#act(program);
    else if (dice < 0.7) this.#changeWeather();
    else if (dice < 0.74) this.#agent.die();
    else if (dice < 0.84) this.#changeStore(program);
    else if (dice < 0.9) this.#askOfOther(program);
    await this.#pass(random.pick([0, 10, 500, 2_000, 10_000, 60_000, refreshMs]));
  }

  /** All troubles end. Then every program gets an instance, and nothing waits. */
  async rest(): Promise<void> {
    this.#network.trouble = 0;
    this.#network.isAway = false;
    this.#crashes = 0;
    for (const licenseKey of ['KEY-0', 'KEY-1'])
      this.#store.change(licenseKey, { isDisabled: false, expiresAt: null });
    await this.#pass(2 * timeoutMs);
    if (this.#agent.isDead) await this.#restart();
    const until = this.#time.monotonic + livenessMs;
    while (this.#time.monotonic < until && !this.#isAtRest()) {
      for (const program of this.#programs) if (program.instance === null) this.#act(program);
      await this.#pass(5_000);
    }
    this.#expect(this.#isAtRest(), 'what programs want is not done when all is well');
    this.#checkSeats();
  }

  [Symbol.dispose](): void {
    this.#agent.die();
    this.#machine[Symbol.dispose]();
  }

  #isAtRest(): boolean {
    const { pending, in_flight: inFlight, uncertain } = this.#machine.transaction.operations.depth();
    return (
      this.#programs.every(({ instance, isWaiting }) => instance !== null && !isWaiting) &&
      pending + inFlight + uncertain === 0
    );
  }

  #checkSeats(): void {
    const made = this.#store.calls.filter(({ name, counted }) => name === 'activate' && counted === 1);
    const left = new Set(
      ['KEY-0', 'KEY-1'].flatMap((key) => this.#store.license(key).instances.map(({ id }) => id)),
    );
    for (const id of this.#given) this.#expect(!left.has(id), `${id} was given back, and takes a seat`);
    if (this.#apiKey === null) return;
    this.#expect(
      made.length === this.#told.size,
      `${made.length} seats were taken for ${this.#told.size} activations`,
    );
  }

  #newAgent(): ActivationAgent {
    return new ActivationAgent({
      machine: this.#machine,
      network: this.#network,
      clock: this.#clock,
      random: this.#random,
      apiKey: this.#apiKey,
      crashes: () => this.#crashes,
    });
  }

  async #restart(): Promise<void> {
    this.#ended.resolve(null);
    await this.#pass(0);
    this.#ended = Promise.withResolvers();
    this.#clock = this.#clock.restarted(await this.#machine.storedTime());
    this.#agent = this.#newAgent();
    const started = this.#agent.start();
    await this.#pass(1);
    if (!this.#agent.isDead) await started;
  }

  async #pass(ms: number): Promise<void> {
    await this.#time.advance(ms);
  }

  #changeWeather(): void {
    const random = this.#random;
    this.#network.trouble = random.pick([0, 0.1, 0.4, 0.8]);
    this.#network.isAway = random.chance(0.25);
    this.#crashes = random.pick([0, 0, 0.02, 0.1]);
  }

  #changeStore({ key, instance }: Program): void {
    const random = this.#random;
    const change = random.pick(['disable', 'enable', 'expire', 'other', 'deactivate']);
    if (change === 'other') this.#store.activate(key, 'another machine');
    else if (change === 'deactivate') this.#store.deactivate(key, instance ?? '');
    else if (change === 'expire')
      this.#store.change(key, { expiresAt: this.#outside.now() + random.between(1, 120_000) });
    else this.#store.change(key, { isDisabled: change === 'disable', expiresAt: null });
  }

  /** Asks for an instance that there is not, or that the program gave back. */
  #askOfOther(program: Program): void {
    if (program.isWaiting) return;
    const own = [...this.#given].filter((id) => this.#told.get(id) === program.name);
    const instanceId = this.#random.pick(['made-up', ...own]);
    void this.#ask(program, 'validate', { licenseKey: program.key, instanceId });
  }

  /** A program asks for one thing at a time. */
  #act(program: Program): void {
    if (program.isWaiting) return;
    const { key: licenseKey, name: instanceName, instance: instanceId } = program;
    if (instanceId === null) void this.#ask(program, 'activate', { licenseKey, instanceName });
    else if (this.#random.chance(0.2)) void this.#ask(program, 'deactivate', { licenseKey, instanceId });
    else void this.#ask(program, 'validate', { licenseKey, instanceId });
  }

  async #ask(program: Program, call: string, values: Record<string, string>): Promise<void> {
    program.isWaiting = true;
    if (call === 'deactivate') this.#wanted.add(values['instanceId'] ?? '');
    const told = await Promise.race([this.#agent.call(call, values), this.#ended.promise]);
    program.isWaiting = false;
    if (told === null) return;
    if (call === 'activate') this.#activated(program, told);
    else if (call === 'validate') this.#validated(program, values, told);
    else this.#deactivated(program, values['instanceId'] ?? '', told);
  }

  #activated(program: Program, told: NonNullable<Told>): void {
    const { activated, instance } = told.body as { activated?: boolean; instance?: { id: string } };
    if (activated !== true) return this.#expectNo(program.key, told);
    const id = instance?.id ?? '';
    this.#expect(!this.#told.has(id), `${id} was given to two activations`);
    this.#told.set(id, program.name);
    program.instance = id;
  }

  #validated(program: Program, { instanceId = '' }: Record<string, string>, told: NonNullable<Told>): void {
    const stored = `${program.key} ${instanceId}`;
    if (told.body['valid'] === true) {
      const age = this.#outside.now() - (this.#good.get(stored) ?? -Infinity);
      this.#expect(age <= freshness.graceMs + timeoutMs, `${stored} is valid by an answer of ${age} ms ago`);
      this.#expect(!this.#given.has(instanceId), `${stored} is valid, and was given back`);
      return;
    }
    if (!this.#wanted.has(instanceId)) this.#expectNo(stored, told);
    if (program.instance === instanceId && (this.#wanted.has(instanceId) || !this.#isThere(program)))
      program.instance = null;
  }

  #deactivated(program: Program, id: string, told: NonNullable<Told>): void {
    // A deactivation that is repeated finds the instance gone.
    if (told.body['deactivated'] === true) this.#given.add(id);
    program.instance = null;
    if (this.#random.chance(0.5)) this.#askOfOther(program);
  }

  #isThere({ key, instance }: Program): boolean {
    return this.#store.license(key).instances.some(({ id }) => id === instance);
  }

  #expectNo(stored: string, { body }: NonNullable<Told>): void {
    this.#expect(
      this.#bad.has(stored),
      `${stored} got ${JSON.stringify(body)}, which the store has not said`,
    );
  }

  #expect(holds: boolean, law: string): void {
    if (!holds) this.broken ??= law;
  }

  /** Notes what the store says, whether it arrives or not. */
  #watchStore(): void {
    const handle = this.#store.handle.bind(this.#store);
    this.#store.handle = (call) => {
      const answer = handle(call);
      const {
        valid,
        activated,
        deactivated,
        instance,
        license_key: key,
      } = answer.body as {
        valid?: boolean;
        activated?: boolean;
        deactivated?: boolean;
        instance?: { id: string } | null;
        license_key?: { expires_at: string | null } | null;
      };
      const id = instance?.id ?? textOf(call.parameters['instance_id']);
      const names = [`${call.licenseKey} ${id}`, ...(id === '' ? [call.licenseKey] : [])];
      const now = this.#outside.now();
      for (const name of names) {
        if (valid === true || activated === true) this.#good.set(name, now);
        // The agent knows when a key ends.
        const ends = typeof key?.expires_at === 'string';
        if (valid === false || activated === false || deactivated === false || ends) this.#bad.add(name);
      }
      return answer;
    };
  }
}
