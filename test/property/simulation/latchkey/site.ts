import type { Dispatcher } from 'undici';
import { lazyChangeFeed } from '../../../../src/features/following/daemon/process.ts';
import type { TimeMark } from '../../../../src/domain/clock.ts';
import type {
  LicenseOperationKind,
  OperationKind,
  OperationState,
} from '../../../../src/domain/outbox/operation.ts';
import { agentCredentials, TokenUses } from '../../../../src/service/access/credential.ts';
import { isUpstreamKnown } from '../../../../src/service/outbox/upstream/identity.ts';
import { Announcer } from '../../../../src/service/writer.ts';
import { silent } from '../../../support/silent-log.ts';
import type { VirtualClock, VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { count } from '../history.ts';
import { Machine, type Configuration, type Faults } from '../machine.ts';
import type { Sabotage } from '../sabotage.ts';
import { SimulatedAgent } from '../simulated-agent.ts';
import { productKey } from './authority.ts';
import type { LatchkeyNetwork } from './network.ts';
import type { Uuid7Random } from './random.ts';
import { Served, type Answering, type Response } from './served.ts';
import { ToldCoupons } from './told-coupons.ts';

/** An operation in the outbox of an agent. */
export type OperationRow = {
  id: string;
  kind: OperationKind;
  subject: string;
  state: OperationState;
  held: number;
  attempts: number;
  lastError: string | null;
};

/** What only a person can decide: nobody knows any more whether it was carried out. */
export const undecidable = /too_old_to_know|Nothing shows any more whether|may have been applied at/;

/** An operation as the agent in the middle has taken it from below. */
export function operationAbove(sites: readonly Site[], id: string): OperationRow | undefined {
  return sites
    .find(({ isMiddle }) => isMiddle)
    ?.operations()
    .find((each) => each.id === id);
}

/** Whether the agent in the middle has taken an operation and not delivered it: it says there what became of it. */
export function isOpenAbove(sites: readonly Site[], id: string): boolean {
  const above = operationAbove(sites, id);
  return above !== undefined && above.state !== 'delivered';
}

/** What a machine needs of the world around it. */
export type Surroundings = {
  time: VirtualTime;
  random: Uuid7Random;
  configuration: Configuration;
  faults: Faults;
  sabotage: { agent?: Sabotage } | null;
  broken: string[];
  pass: (ms: number) => Promise<void>;
};

/** Where a machine is. `wall`: what its wall clock shows at first (epoch ms). `mark`: the time that its store has seen. */
type Setting = { place: string; network: LatchkeyNetwork; wall?: number; mark?: TimeMark | null };

const forEver = new AbortController().signal;

/** A machine with an agent: its store, its process, and what its callers were told. */
export class Site implements Answering, Disposable {
  machine: Machine = new Machine();
  agent: SimulatedAgent;
  /** Changes that were asked for, and those that were answered 2xx, by "key kind". */
  issued: Map<string, number> = new Map();
  answered: Map<string, number> = new Map();
  /** What callers were told about coupons. */
  told: ToldCoupons = new ToldCoupons();
  /** What the upstream has last said about each license. */
  seen: Map<string, { epoch: number; revision: number; enabled: boolean }> = new Map();
  readonly network: LatchkeyNetwork;
  place: string;
  /** There are agents below. */
  isMiddle = false;
  /** When the machine was last put back to an earlier snapshot (ms of virtual time); null: never. */
  putBackAt: number | null = null;
  /** When the agent last started (ms of virtual time). */
  startedAt = 0;
  readonly #world: Surroundings;
  #clock: VirtualClock;
  #changes = new Announcer();
  #served: Served | null = null;
  #backup: { bytes: Uint8Array; answered: Map<string, number>; told: ToldCoupons } | null = null;

  constructor(
    world: Surroundings,
    { place, network, wall, mark = null }: Setting,
    copied: Uint8Array | null = null,
  ) {
    this.#world = world;
    this.place = place;
    this.network = network;
    if (copied !== null) this.#replaceStore(copied);
    this.#clock = world.time.clock({ ...(wall !== undefined && { wall }), mark });
    this.agent = this.#process();
  }

  get clock(): VirtualClock {
    return this.#clock;
  }

  operations(): OperationRow[] {
    return this.machine.database
      .prepare(
        'SELECT id, kind, subject, state, held, attempts, last_error AS lastError FROM outbox ORDER BY seq',
      )
      .all() as OperationRow[];
  }

  async start(): Promise<void> {
    this.startedAt = this.#world.time.monotonic;
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
    if (how === 'silently') this.putBackAt = this.#world.time.monotonic;
    if (how === 'elsewhere') this.place = `${this.place}, elsewhere`;
    await this.#startAnother(how === 'restore');
  }

  /** The state directory is lost: another process starts on an empty one. */
  async lose(): Promise<void> {
    this.agent.die();
    this.#backup = null;
    this.#replaceStore(null);
    await this.#startAnother();
  }

  /** A machine with the state directory of this one. `isKnown`: the agent can see that it was copied. */
  async copy(isKnown: boolean): Promise<Site> {
    const place = isKnown ? `${this.place}, copied` : this.place;
    const { wall } = this.#clock.reading();
    const mark = await this.machine.storedTime();
    return new Site(this.#world, { place, network: this.network, wall, mark }, this.machine.backup());
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
    const tenant = this.tenant();
    void this.agent.licenseService.verify(tenant, key, forEver).catch((error: unknown) => {
      if (!this.agent.isDead) this.#world.broken.push(`a verify failed: ${String(error)}`);
    });
  }

  change(key: string, trigger: LicenseOperationKind): void {
    count(this.issued, `${key} ${trigger}`);
    void this.#ask(key, trigger);
  }

  /** Answers an agent below. */
  async handle(request: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Response | null> {
    const { agent } = this;
    if (agent.isDead) return null;
    try {
      const response = await (this.#served ??= this.#serve()).answer(request, signal);
      return agent.isDead ? null : response;
    } catch (error) {
      // The store of a process that ended was closed.
      if (signal.aborted || agent.isDead) return null;
      throw error;
    }
  }

  async #ask(key: string, trigger: LicenseOperationKind): Promise<void> {
    const { agent, machine } = this;
    const waitMs = this.#world.random.pick([0, 0, 500, 5_000]);
    const request = { licenseKey: key, trigger, actor: 'product', idempotency: null, waitMs };
    const changing = agent.licenseService.change({ ...request, tenant: this.tenant() }, forEver);
    const answer = await changing.catch(() => null);
    // An answer of a store that was replaced meanwhile is that of a process that is gone.
    if (answer?.ok === true && machine === this.machine) count(this.answered, `${key} ${trigger}`);
  }

  [Symbol.dispose](): void {
    this.agent.die();
    this.machine[Symbol.dispose]();
  }

  tenant(): { accountId: string; productKey: string | null } {
    return { accountId: 'default', productKey: this.agent.products.idOf(productKey) };
  }

  #replaceStore(bytes: Uint8Array | null): void {
    this.machine[Symbol.dispose]();
    this.machine = new Machine(1, bytes);
    this.issued = new Map(this.machine.kept().map(({ name, kept }) => [name, kept]));
    this.answered = new Map();
    this.seen = new Map();
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
    const { random, configuration, faults, sabotage, broken } = this.#world;
    this.#served = null;
    this.#changes = new Announcer();
    return new SimulatedAgent({
      machine: this.machine,
      network: this.network,
      behaviour: { dialect: 'specification', unknown: 'empty' },
      clock: this.#clock,
      random,
      configuration,
      faults,
      place: this.place,
      sabotage: sabotage?.agent ?? null,
      onWritten: () => this.#changes.announce(['anything']),
      onObserved: () => undefined,
      onDate: () => undefined,
      onFailure: (error) => {
        broken.push(`the process ended by itself: ${error instanceof Error ? error.stack : String(error)}`);
      },
    });
  }

  #serve(): Served {
    const { machine, agent } = this;
    const { random, configuration } = this.#world;
    const clock = this.#clock;
    const changes = this.#changes;
    const reader = machine.transaction;
    const { writer, licenseService, couponService, checkoutService: checkout, products } = agent;
    const parts = { reader, writer, changes, clock, random, log: silent };
    const chain = {
      reader,
      productIds: () => products.configured.map(({ id }) => id),
      followNew: () => agent.sync.newKeys(),
    };
    const isSame = (one: string, two: string): boolean => one === two;
    const services = {
      role: 'agent' as const,
      instance: agent.instance,
      // As the daemon does (daemon/compose.ts).
      epoch: () => (isUpstreamKnown(reader) ? reader.settings.epoch() : null),
      licenseService,
      couponService,
      checkout,
      credentials: agentCredentials(
        { reader, isSame, verifiedNow: () => clock.verified(), uses: new TokenUses() },
        () => ({ apiKeyDigest: configuration.apiKey, products: products.configured }),
      ),
      products,
      digest: (text: string) => text,
      changeFeed: lazyChangeFeed({ ...parts, chain }),
      reader,
      writer,
      changes,
    };
    return new Served(services, clock);
  }
}
