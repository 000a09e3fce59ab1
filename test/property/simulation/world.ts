import { VirtualTime, type VirtualClock } from '../../support/harness/virtual-clock.ts';
import { activatedKey, partsOfKey } from '../../../src/domain/agent/activated-key.ts';
import type { SimulatedStore } from './at-store.ts';
import { emptyHistory, type History, type Order } from './history.ts';
import { Ledger } from './ledger.ts';
import { Machine, type Configuration, type Faults } from './machine.ts';
import { behaviourOf, drawBehaviour, firewallMarks, type UpstreamBehaviour } from './upstream-behaviour.ts';
import { Network } from './network.ts';
import { SeededRandom } from './seeded-random.ts';
import { SimulatedAgent } from './simulated-agent.ts';
import type { Sabotage } from './sabotage.ts';
import { Watch } from './watch.ts';

/** The kinds of trouble that a seed has or has not; what each does is in `trouble.ts`. */
export type TroubleName =
  | 'others'
  | 'people'
  | 'wait'
  | 'late_arrival'
  | 'products'
  | 'renames'
  | 'spellings'
  | 'refusals'
  | 'poison'
  | 'gateway'
  | 'removal'
  | 'restore'
  | 'copy'
  | 'replacement'
  | 'dates'
  | 'policy'
  | 'full'
  | 'cache'
  | 'patience'
  | 'coupons'
  | 'commit';

/** Troubles after which every use is delivered, and nothing else. */
const leaveNoDoubt: ReadonlySet<TroubleName> = new Set<TroubleName>([
  'wait',
  'late_arrival',
  'products',
  'renames',
  'spellings',
  'policy',
  'full',
  'cache',
  'dates',
  'patience',
  'coupons',
  'commit',
]);

/** Troubles in which something that the agent's store does not know changes a count. */
const bringOthers: ReadonlySet<TroubleName> = new Set<TroubleName>(['others', 'restore', 'copy']);

/** A product as the agent is configured with it. */
export type CatalogueProduct = { key: string; secret: string; isRemoved: boolean };

export type WorldOptions = {
  seed: number;
  troubles: readonly TroubleName[];
  sabotage: Sabotage | null;
  /** Absent: the upstream speaks the specification. */
  store?: SimulatedStore | undefined;
};

/** A copy of the store, and what callers had been told until then. */
type Backup = { bytes: Uint8Array } & Pick<History, 'answered' | 'once' | 'coupons'>;

/** One machine with an agent, one upstream, the network between them, and the callers. */
export class World implements Disposable {
  readonly random: SeededRandom;
  readonly troubles: ReadonlySet<TroubleName>;
  readonly configuration: Configuration;
  readonly faults: Faults;
  readonly ledger: Ledger;
  readonly network: Network;
  readonly behaviour: UpstreamBehaviour;
  readonly watch: Watch = new Watch();
  /** License keys as the upstream spells them. */
  readonly keys: readonly string[];
  /** By the name of a product upstream: how the agent is configured with it. */
  readonly catalogue: ReadonlyMap<string, CatalogueProduct>;
  /** How many times a product was removed from the configuration. */
  removals = 0;
  /** By license key: the name of its product upstream. */
  readonly productOf: Map<string, string> = new Map();
  /** The counts to begin with, by key as the upstream files it. */
  readonly initial: Map<string, number> = new Map();
  readonly history: History = emptyHistory();
  readonly order: Order = { checked: 0, latest: new Map() };
  machine: Machine;
  agent: SimulatedAgent;
  /** Where the state directory is. */
  place = 'here';
  readonly #sabotage: Sabotage | null;
  readonly #time = new VirtualTime();
  #backup: Backup | null = null;
  #clock: VirtualClock;

  constructor({ seed, troubles, sabotage, store }: WorldOptions) {
    const random = new SeededRandom(seed);
    this.random = random;
    this.troubles = new Set(troubles);
    this.#sabotage = sabotage;
    const isMany = this.troubles.has('products') || this.troubles.has('renames');
    const names = Array.from({ length: isMany ? 3 : 1 }, (_, n) => `product-${n}`);
    this.catalogue = new Map(
      names.map((name) => [name, { key: name, secret: `secret of ${name}`, isRemoved: false }]),
    );
    this.configuration = {
      writers: this.troubles.has('others') ? 'many' : 'single',
      onUncertain: random.chance(0.8) ? 'infer' : 'hold',
      concurrency: random.between(1, 4),
      secrets: secretsOf(this.catalogue),
      apiKey: 'api-key',
      baseUrl: 'https://upstream.example',
    };
    this.faults = { crashes: random.pick([0, 0.002, 0.02]), isFull: false, afterCommit: null };
    this.ledger = new Ledger(new Map([...this.catalogue].map(([name, { secret }]) => [secret, name])));
    this.ledger.foldsCase = this.troubles.has('spellings');
    const { ledger, watch } = this;
    this.network = new Network({ ledger, clock: this.#time.clock(), random, observer: watch });
    this.behaviour = store === undefined ? drawBehaviour(seed) : behaviourOf(store);
    this.ledger.disabled = store?.disabled ?? null;
    this.network.firewallMarks = firewallMarks[this.behaviour.dialect];
    this.keys = Array.from({ length: random.between(1, 4) }, (_, index) =>
      store?.hasActivations === true && index % 2 === 1
        ? activatedKey(`KEY-${index - 1}`, `activation-${index}`)
        : `KEY-${index}`,
    );
    for (const key of this.keys) this.#addLicense(key);
    this.machine = new Machine();
    this.#clock = this.#time.clock();
    this.agent = this.#process();
  }

  get clock(): VirtualClock {
    return this.#clock;
  }

  /** Ms of virtual time that have passed. */
  get monotonic(): number {
    return this.#time.monotonic;
  }

  /** Whether nothing in this world can leave uncertainty: no count may then be anything but delivered. */
  get isStrict(): boolean {
    // A store counts no use of a disabled key, and does not tell its count.
    return this.behaviour.store === undefined && this.troubles.isSubsetOf(leaveNoDoubt);
  }

  /** Whether only this agent changes counts, and its store is complete. */
  get isAlone(): boolean {
    return this.troubles.isDisjointFrom(bringOthers);
  }

  /** Whether what is about this key cannot get through, even at rest. */
  isStuck(subject: string): boolean {
    return this.network.faultProfile.poison?.subject === subject.toLowerCase();
  }

  async pass(ms: number): Promise<void> {
    await this.#time.advance(ms);
  }

  async runUntil(holds: () => boolean, withinMs: number): Promise<void> {
    await this.#time.runUntil(holds, withinMs);
  }

  async start(): Promise<void> {
    await this.unharmed(() => this.agent.start());
    await this.#time.advance(10);
  }

  /** The process dies if it still lives, and another one starts on the machine's store. */
  async restart(): Promise<void> {
    this.agent.die();
    await this.#time.advance(this.random.pick([1, 500, 20_000]));
    await this.#startAnother();
  }

  remove(product: CatalogueProduct): void {
    product.isRemoved = true;
    this.removals += 1;
  }

  /** The configuration gets the products of the catalogue, and is reloaded. */
  reload(): void {
    this.configuration.secrets = secretsOf(this.catalogue);
    if (!this.agent.isDead) this.agent.reload();
  }

  /** The id by which the agent knows the product of a license key; null: the product is not configured. */
  productIdOf(key: string): string | null {
    const product = this.catalogue.get(this.productOf.get(key) ?? '');
    return product === undefined || product.isRemoved ? null : this.agent.products.idOf(product.key);
  }

  /** The seller enables each license key, if only then the upstream tells its count. */
  showCounts(): void {
    if (this.behaviour.store === undefined) return;
    for (const key of this.keys)
      if (!this.ledger.license(key).enabled) this.ledger.changeElsewhere(key, 'enable');
  }

  makeBackup(): void {
    const { answered, once, coupons } = structuredClone({ ...this.history });
    this.#backup = { bytes: this.machine.backup(), answered, once, coupons };
  }

  /** The process dies, and another one starts on what a backup holds: where it was, or in another place. */
  async restore(where: 'in place' | 'elsewhere'): Promise<void> {
    const backup = this.#backup;
    if (backup === null) return;
    this.agent.die();
    await this.#time.advance(this.random.pick([1, 500, 20_000]));
    const before = this.machine;
    this.machine = new Machine(before.incarnation + 1, backup.bytes);
    before[Symbol.dispose]();
    const { history } = this;
    forgetResponses(history, backup);
    for (const { name, kept } of this.machine.kept()) {
      history.issued.set(this.ledger.fold(name), kept);
    }
    this.#doubtRestored();
    if (where === 'elsewhere') this.place = `${this.place}, elsewhere`;
    await this.#startAnother(where === 'in place');
  }

  /** The process dies, and another one starts on the same store in another place. */
  async moveElsewhere(): Promise<void> {
    this.place = `${this.place}, moved`;
    this.#doubtRestored();
    await this.restart();
  }

  /** No crash strikes meanwhile, and there is room. */
  async unharmed(act: () => Promise<unknown>): Promise<void> {
    if (this.agent.isDead) return;
    const before = { ...this.faults };
    Object.assign(this.faults, { crashes: 0, isFull: false, afterCommit: null });
    await act();
    Object.assign(this.faults, before);
  }

  jump(byMs: number): void {
    this.#clock.jumpWall(byMs);
  }

  [Symbol.dispose](): void {
    this.agent.die();
    this.machine[Symbol.dispose]();
  }

  #doubtRestored(): void {
    for (const id of this.machine.unfinished()) this.history.restored.add(id);
  }

  async #startAnother(isRestored = false): Promise<void> {
    // A process that is stopped while the clock shows what nobody believes cannot know better afterwards.
    if (this.#clock.isUnverified) this.history.ranks.clear();
    this.#clock = this.#clock.restarted(await this.machine.storedTime());
    this.agent = this.#process();
    if (isRestored) await this.unharmed(() => this.agent.writer.write('restore', {}));
    await this.start();
  }

  #addLicense(key: string): void {
    const isActivation = partsOfKey(key).activationId !== null;
    const drawn = this.random.between(0, 3);
    const uses = isActivation ? 0 : drawn;
    const product = this.random.pick([...this.catalogue.keys()] as [string, ...string[]]);
    this.productOf.set(key, product);
    this.initial.set(this.ledger.fold(key), uses);
    this.ledger.add(key, product, uses);
    if (isActivation) this.ledger.oneWay.add(key);
  }

  #process(): SimulatedAgent {
    const { history } = this;
    return new SimulatedAgent({
      machine: this.machine,
      network: this.network,
      behaviour: this.behaviour,
      clock: this.#clock,
      random: this.random,
      configuration: this.configuration,
      faults: this.faults,
      place: this.place,
      sabotage: this.#sabotage,
      onObserved: ({ licenseKey, enabled, buyerEmail }) => {
        const key = this.ledger.fold(licenseKey);
        const said = history.said.get(key) ?? { enabled: 0, disabled: 0 };
        // Gumroad does not show the buyer of a disabled key: its answer comes after those that were seen.
        const number = Number(/\d+/.exec(buyerEmail)?.[0] ?? Math.max(said.enabled, said.disabled) + 0.5);
        const kind = enabled ? 'enabled' : 'disabled';
        history.answers += 1;
        history.said.set(key, { ...said, [kind]: Math.max(said[kind], number) });
      },
      onDate: () => {
        history.answers += 1;
      },
      onFailure: (error) => {
        history.broken.push(`the process ended by itself: ${String(error)}`);
      },
    });
  }
}

/** By the key of a configured product: its secret. */
function secretsOf(catalogue: ReadonlyMap<string, CatalogueProduct>): Map<string, string> {
  const configured = [...catalogue.values()].filter(({ isRemoved }) => !isRemoved);
  return new Map(configured.map(({ key, secret }) => [key, secret]));
}

/** What was answered after the backup was made is not known to it. */
function forgetResponses(history: History, backup: Backup): void {
  const { answered, once, coupons } = structuredClone(backup);
  Object.assign(history, { answered, once, coupons });
  // What was asked for and not answered by then is asked for anew.
  for (const [id, given] of once) if (given === null) once.delete(id);
  history.issued.clear();
  history.said.clear();
  history.ranks.clear();
}
