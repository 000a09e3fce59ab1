import type {
  LicenseOperationKind,
  OperationKind,
  OperationState,
} from '../../../../src/domain/outbox/operation.ts';
import { protocolOf } from '../../../../src/service/outbox/protocol.ts';
import { VirtualTime, type VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { count } from '../history.ts';
import { Machine, type Configuration, type Faults } from '../machine.ts';
import type { Sabotage } from '../sabotage.ts';
import { SimulatedAgent } from '../simulated-agent.ts';
import { productKey, SimulatedAuthority, type AuthoritySabotage } from './authority.ts';
import { LatchkeyNetwork } from './network.ts';
import { Uuid7Random } from './random.ts';
import { ToldCoupons } from './told-coupons.ts';

/** The kinds of trouble that a seed has or has not; what each does is in `trouble.ts`. */
export type LatchkeyTroubleName =
  | 'others'
  | 'seller'
  | 'late'
  | 'gateway'
  | 'authority_restart'
  | 'authority_restore'
  | 'agent_restore'
  | 'rollback'
  | 'copy'
  | 'secrets'
  | 'plain_first'
  | 'person'
  | 'full'
  | 'bursts'
  | 'coupons';

export type LatchkeySabotage = { agent?: Sabotage; authority?: AuthoritySabotage };

export type LatchkeyWorldOptions = {
  seed: number;
  troubles: readonly LatchkeyTroubleName[];
  sabotage: LatchkeySabotage | null;
};

/** An operation in the outbox of an agent. */
export type OperationRow = {
  id: string;
  kind: OperationKind;
  subject: string;
  state: OperationState;
  held: number;
  attempts: number;
  lastError: string | null;
  pushSeq: number | null;
};

/** What a machine needs of the world around it. */
type Surroundings = Pick<
  LatchkeyWorld,
  'time' | 'random' | 'network' | 'configuration' | 'faults' | 'sabotage' | 'broken' | 'pass' | 'noteDoubt'
>;

const forEver = new AbortController().signal;
const minUses = 1_000;

/** A machine with an agent: its store, its process, and what its callers were told. */
export class Site implements Disposable {
  machine: Machine = new Machine();
  agent: SimulatedAgent;
  /** Changes that were asked for, and those that were answered 2xx, by "key kind". */
  issued: Map<string, number> = new Map();
  answered: Map<string, number> = new Map();
  /** What callers were told about coupons. */
  told: ToldCoupons = new ToldCoupons();
  place: string;
  /** Its store has pushed. */
  hasPushed = false;
  readonly #world: Surroundings;
  #clock: VirtualClock;
  #backup: { bytes: Uint8Array; answered: Map<string, number>; told: ToldCoupons } | null = null;

  constructor(world: Surroundings, place: string, copied: Uint8Array | null = null) {
    this.#world = world;
    this.place = place;
    if (copied !== null) this.#replaceStore(copied);
    this.#clock = world.time.clock();
    this.agent = this.#process();
  }

  get isPushing(): boolean {
    return protocolOf(this.machine.transaction) === 'latchkey';
  }

  operations(): OperationRow[] {
    return this.machine.database
      .prepare(
        `SELECT id, kind, subject, state, held, attempts, last_error AS lastError, push_seq AS pushSeq
         FROM outbox ORDER BY seq`,
      )
      .all() as OperationRow[];
  }

  async start(): Promise<void> {
    await this.unharmed(() => this.agent.start());
  }

  async restart(): Promise<void> {
    this.agent.die();
    await this.#world.pass(this.#world.random.pick([1, 500, 20_000]));
    await this.#startAnother();
  }

  backUp(): void {
    const { answered, told } = this;
    this.#backup = { bytes: this.machine.backup(), answered: new Map(answered), told: told.clone() };
  }

  /** Another process starts on a backup. `how`: by `latchkey restore`, in another place, or as if nothing had happened. */
  async restore(how: 'restore' | 'elsewhere' | 'silently'): Promise<void> {
    const backup = this.#backup;
    if (backup === null) return;
    this.agent.die();
    await this.#world.pass(this.#world.random.pick([1, 500, 20_000]));
    this.#replaceStore(backup.bytes);
    this.answered = new Map(backup.answered);
    this.told = backup.told.clone();
    this.#world.noteDoubt(this);
    if (how === 'elsewhere') this.place = `${this.place}, elsewhere`;
    await this.#startAnother(how === 'restore');
  }

  /** A machine with the state directory of this one. `isKnown`: the agent cannot see that it was copied. */
  copy(isKnown: boolean): Site {
    const site = new Site(this.#world, isKnown ? `${this.place}, copied` : this.place, this.machine.backup());
    this.#world.noteDoubt(site);
    return site;
  }

  /** No crash strikes meanwhile. */
  async unharmed(act: () => Promise<unknown>): Promise<void> {
    if (this.agent.isDead) return;
    const { faults } = this.#world;
    const { crashes, isFull } = faults;
    Object.assign(faults, { crashes: 0, isFull: false });
    await act();
    Object.assign(faults, { crashes, isFull });
  }

  /** Removes all operations that were finished before an instant, as maintenance does. */
  async prune(removalTime: number, keptMs: number): Promise<void> {
    for (let removed = Infinity; removed > 0;) {
      const pruned = await this.agent.writer.write('pruneOperations', { removalTime, keptMs, limit: 1_000 });
      removed = pruned.ok ? pruned.value.removed : 0;
    }
  }

  verify(key: string): void {
    const tenant = this.#tenant();
    void this.agent.licenseService.verify(tenant, key, forEver).catch((error: unknown) => {
      if (!this.agent.isDead) this.#world.broken.push(`a verify failed: ${String(error)}`);
    });
  }

  change(key: string, trigger: LicenseOperationKind): void {
    count(this.issued, `${key} ${trigger}`);
    void this.#ask(key, trigger);
  }

  async #ask(key: string, trigger: LicenseOperationKind): Promise<void> {
    const { agent, machine } = this;
    const waitMs = this.#world.random.pick([0, 0, 500, 5_000]);
    const request = { licenseKey: key, trigger, actor: 'product', idempotency: null, waitMs };
    const changing = agent.licenseService.change({ ...request, tenant: this.#tenant() }, forEver);
    const answer = await changing.catch(() => null);
    // An answer of a store that was replaced meanwhile is that of a process that is gone.
    if (answer?.ok === true && machine === this.machine) count(this.answered, `${key} ${trigger}`);
  }

  [Symbol.dispose](): void {
    this.agent.die();
    this.machine[Symbol.dispose]();
  }

  #tenant(): { accountId: string; productKey: string | null } {
    return { accountId: 'default', productKey: this.agent.products.idOf(productKey) };
  }

  #replaceStore(bytes: Uint8Array): void {
    this.machine[Symbol.dispose]();
    this.machine = new Machine(1, bytes);
    this.hasPushed = false;
    this.issued = new Map(this.machine.kept().map(({ name, kept }) => [name, kept]));
    this.answered = new Map();
    this.told = new ToldCoupons();
  }

  async #startAnother(isRestored = false): Promise<void> {
    this.#clock = this.#clock.restarted(await this.machine.storedTime());
    this.agent = this.#process();
    this.told.endRequests();
    if (isRestored) await this.unharmed(() => this.agent.writer.write('restore', {}));
    await this.start();
  }

  #process(): SimulatedAgent {
    const { network, random, configuration, faults, sabotage, broken } = this.#world;
    return new SimulatedAgent({
      machine: this.machine,
      network,
      isLatchkey: true,
      behaviour: { dialect: 'specification', unknown: 'empty' },
      clock: this.#clock,
      random,
      configuration,
      faults,
      place: this.place,
      sabotage: sabotage?.agent ?? null,
      onObserved: () => undefined,
      onDate: () => undefined,
      onFailure: (error) => {
        broken.push(`the process ended by itself: ${error instanceof Error ? error.stack : String(error)}`);
      },
    });
  }
}

/** An authority that speaks `/sync/v1`, agents, the network between them, and their callers. */
export class LatchkeyWorld implements Disposable {
  readonly random: Uuid7Random;
  readonly troubles: ReadonlySet<LatchkeyTroubleName>;
  readonly sabotage: LatchkeySabotage | null;
  readonly time: VirtualTime = new VirtualTime();
  readonly clock: VirtualClock = this.time.clock();
  readonly authority: SimulatedAuthority;
  readonly network: LatchkeyNetwork;
  readonly configuration: Configuration;
  readonly faults: Faults;
  /** License keys, and their counts to begin with: high enough that no decrease is lost at 0. */
  readonly keys: ReadonlyMap<string, number>;
  readonly sites: Site[] = [];
  readonly broken: string[] = [];
  /** Operations about which the plain protocol may be in doubt. */
  readonly doubted: Set<string> = new Set();
  /** The codes of coupons that anybody has asked for. */
  readonly codes: string[] = [];
  /** Orders, with the codes that they redeem. */
  readonly orders: Map<string, string> = new Map();
  /** Orders about which callers asked while their agent spoke the plain protocol, which tells the upstream of no redemption. */
  readonly keptAtSites: Set<string> = new Set();
  /** The codes of coupons that the seller has deleted, as `foldCouponCode` makes them. */
  readonly deleted: Set<string> = new Set();

  constructor({ seed, troubles, sabotage }: LatchkeyWorldOptions) {
    const random = new Uuid7Random(seed);
    this.random = random;
    this.troubles = new Set(troubles);
    this.sabotage = sabotage;
    this.authority = new SimulatedAuthority(this.clock, random, sabotage?.authority);
    this.network = new LatchkeyNetwork(this.authority, this.time.clock(), random);
    const isShared = this.troubles.has('others') || this.troubles.has('seller');
    this.configuration = {
      writers: isShared ? 'many' : 'single',
      onUncertain: 'infer',
      concurrency: random.between(1, 4),
      secrets: new Map([[productKey, this.authority.secret]]),
      apiKey: 'api-key',
      baseUrl: 'https://authority.example',
    };
    this.faults = { crashes: random.pick([0, 0.002, 0.02]), isFull: false, afterCommit: null };
    const licenses = random.between(1, 4);
    this.keys = new Map(Array.from({ length: licenses }, (_, index) => [`KEY-${index}`, minUses + index]));
    const sites = this.troubles.has('others') ? random.between(2, 3) : 1;
    for (let index = 0; index < sites; index += 1) this.sites.push(new Site(this, `site ${index}`));
  }

  async begin(): Promise<void> {
    await this.authority.begin(this.keys);
    for (const site of this.sites) await site.start();
    for (const site of this.sites) for (const key of this.keys.keys()) site.verify(key);
    await this.pass(2_000);
  }

  /** The configuration gets the secret that is right now, and is reloaded. */
  tellSecret(): void {
    this.configuration.secrets = new Map([[productKey, this.authority.secret]]);
    this.configuration.apiKey = this.authority.apiKey ?? this.configuration.apiKey;
    for (const { agent } of this.sites) if (!agent.isDead) agent.reload();
  }

  /** While an agent speaks the plain protocol, its unfinished operations may be in doubt. */
  noteDoubt(site: Site): void {
    if (site.isPushing) return;
    for (const id of site.machine.unfinished()) this.doubted.add(id);
  }

  async pass(ms: number): Promise<void> {
    await this.time.advance(ms);
  }

  [Symbol.dispose](): void {
    for (const site of this.sites) site[Symbol.dispose]();
    this.authority[Symbol.dispose]();
  }
}
