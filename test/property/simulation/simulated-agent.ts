import { syncControl } from '../../../src/daemon/role/agent.ts';
import type { ConfiguredProduct } from '../../../src/domain/agent/product.ts';
import { isFailure } from '../../../src/domain/problem/problem.ts';
import { agentCheckoutService } from '../../../src/service/agent/checkout.ts';
import { agentCouponService } from '../../../src/service/agent/coupon.ts';
import { agentLicenseService } from '../../../src/service/agent/license.ts';
import { AgentProducts, storedProducts } from '../../../src/service/agent/products.ts';
import type { CheckoutService, CouponService, LicenseService } from '../../../src/service/services.ts';
import {
  isEssential,
  type CommandOf,
  type CommandResult,
  type UseCaseName,
  type Writer,
} from '../../../src/service/writer.ts';
import {
  StorageError,
  type SyncControl,
  type SyncUpstream,
  type Upstream,
  type WriteOptions,
} from '../../../src/service/ports.ts';
import { runUseCase } from '../../../src/service/run.ts';
import { localWriter } from '../../../src/store/sqlite/commit.ts';
import { persist } from '../../../src/sync/waiting.ts';
import { Sync } from '../../../src/sync/sync.ts';
import { type SyncOptions } from '../../../src/sync/options.ts';
import { received as dialects } from '../../support/stores/dialects.ts';
import { upstreamClientOver } from '../../../src/upstream/client.ts';
import { recordTime } from '../../../src/daemon/maintenance.ts';
import type { Transport } from '../../../src/upstream/exchange.ts';
import { asSpecified } from '../../support/harness/upstream-harness.ts';
import type { VirtualClock } from '../../support/harness/virtual-clock.ts';
import type { ParsedRequest, Origin } from './ledger.ts';
import {
  freshness,
  longestBackoffMs,
  refreshMs,
  type Configuration,
  type Faults,
  type Machine,
} from './machine.ts';
import { withLicensesOf } from './at-store.ts';
import { type UpstreamBehaviour, withBehaviour } from './upstream-behaviour.ts';
import { reconcileAfterMs, timeoutMs, type Network, type Sender } from './network.ts';
import type { SeededRandom } from './seeded-random.ts';
import { honest, type Sabotage } from './sabotage.ts';
import { StepsAfterCommit } from './step-after-commit.ts';
import { silent, uncounted } from '../../support/silent-log.ts';

const unknownMs = 10_000;

export type AgentParts = {
  machine: Machine;
  network: Pick<Network, 'transport'>;
  behaviour: UpstreamBehaviour;
  clock: VirtualClock;
  random: SeededRandom;
  configuration: Configuration;
  faults: Faults;
  sabotage: Sabotage | null;
  /** Where the state directory is. */
  place: string;
  /** Called after each write. */
  onWritten?: () => void;
  /** Called when the upstream's response about a key is stored. */
  onObserved: (seen: { licenseKey: string; enabled: boolean; buyerEmail: string }) => void;
  /** Called when the upstream has sent a date. */
  onDate: () => void;
  /** Called when the process ends by itself. */
  onFailure: (error: unknown) => void;
};

type ClientSettings = Parameters<typeof upstreamClientOver>[1];

/** One process of the agent: the real service, sync, client and store code, until it dies. */
export class SimulatedAgent implements Sender {
  readonly licenseService: LicenseService;
  readonly couponService: CouponService;
  readonly checkoutService: CheckoutService;
  readonly control: SyncControl;
  readonly sync: Sync;
  readonly writer: Writer;
  isDead = false;
  readonly #client: ClientSettings;
  readonly #parts: AgentParts;
  readonly #steps: StepsAfterCommit;
  readonly #sabotage: Required<Sabotage>;
  readonly #baseUrl: string;
  readonly products: AgentProducts;
  readonly #ending = new AbortController();

  constructor(parts: AgentParts) {
    const { machine, clock, configuration } = parts;
    this.#parts = parts;
    this.#steps = new StepsAfterCommit(parts.faults);
    this.#baseUrl = configuration.baseUrl;
    this.products = new AgentProducts(
      storedProducts(machine.transaction.settings),
      configuredProducts(configuration),
    );
    this.#client = this.#clientSettings();
    this.#sabotage = { ...honest, ...parts.sabotage };
    this.writer = this.#sabotage.writer(this.#mortalWriter(), machine, clock);
    const shared = { reader: machine.transaction, writer: this.writer, clock, log: silent };
    const settings = (): SyncOptions => this.#sabotage.settings(this.#settings());
    this.sync = new Sync({
      ...shared,
      upstream: this.#sabotage.upstream(this.#upstream()),
      syncUpstream: this.#sabotage.syncUpstream(this.#syncUpstream(), machine),
      fraction: () => 0.5,
      meter: uncounted,
      mutex: this.#sabotage.mutex(),
      settings,
      lifetime: this.#ending.signal,
    });
    this.control = syncControl(shared, this.sync);
    const reader = this.#steps.reader(machine.transaction);
    const answering = { freshness, maxPending: 10_000, timeoutMs, refreshMs, unknownMs };
    this.licenseService = agentLicenseService({
      ...shared,
      reader,
      fetcher: this.sync.fetcher,
      deliveries: this.sync.delivery,
      productIds: () => this.products.configured.map(({ id }) => id),
      settings: () => answering,
    });
    const couponParts = {
      lists: shared.reader,
      ...shared,
      reader,
      fetcher: this.sync.coupons,
      deliveries: this.sync.delivery,
      isConfigured: () => true,
      settings: () => answering,
    };
    this.couponService = agentCouponService(couponParts);
    this.checkoutService = agentCheckoutService(couponParts);
  }

  /** The id of the store; empty until the start. */
  get instance(): string {
    return this.#client.self ?? '';
  }

  /** Starts the process; resolves when its store is in use, or never if it dies on the way. */
  async start(): Promise<void> {
    this.#sabotage.beforeStart(this.#parts.machine);
    const started = await this.writer.write('startAgent', {
      adminTokenDigest: 'token',
      place: this.#parts.place,
      reconcileAfterMs: this.#sabotage.settings(this.#settings()).policy.reconcileAfterMs,
    });
    if (started.ok) this.#client.self = started.value.instance;
    await this.#bind();
    // Of a dead process nothing is heard any more: what it awaits never comes.
    this.sync.run(this.#ending.signal).catch((error: unknown) => {
      if (!this.isDead) this.#parts.onFailure(error);
    });
  }

  /** Takes over the products that are configured now, as the daemon does after SIGHUP. */
  reload(): void {
    const { configuration, clock } = this.#parts;
    this.products.configure(configuredProducts(configuration));
    this.sync.limiter.retryCredentials();
    persist(clock, this.#ending.signal, () => this.#bind()).catch((error: unknown) => {
      if (!this.isDead) this.#parts.onFailure(error);
    });
  }

  async #bind(): Promise<void> {
    await this.writer.write('bindUpstream', { baseUrl: this.#baseUrl, products: this.products.list });
  }

  #settings(): SyncOptions {
    return settingsOf(this.#parts.configuration, this.products);
  }

  die(): void {
    this.isDead = true;
    this.#parts.clock.stop();
  }

  originOf(parsed: ParsedRequest): Origin {
    return this.#parts.machine.originOf(parsed);
  }

  async markTime(): Promise<void> {
    this.#parts.clock.checkWall();
    await recordTime({ clock: this.#parts.clock, writer: this.writer });
  }

  #transport(): Transport {
    const { network, behaviour } = this.#parts;
    return this.#sabotage.transport(withBehaviour(network.transport(this), behaviour));
  }

  #clientSettings(): ClientSettings {
    const { configuration, clock, behaviour, onDate } = this.#parts;
    return {
      baseUrl: `${this.#baseUrl}/`,
      apiKey: () => configuration.apiKey,
      secretOf: (productId) => secretOf(configuration, this.products, productId),
      ...asSpecified,
      dialect: dialects[behaviour.dialect],
      onDate: (date) => {
        if (this.isDead) return;
        // As the daemon does (daemon/role/agent.ts).
        if (clock.hear(date)) recordTime({ clock, writer: this.writer }).catch(() => undefined);
        onDate();
      },
    };
  }

  #upstream(): Upstream {
    const { clock, behaviour } = this.#parts;
    const client = upstreamClientOver(this.#transport(), this.#client, clock);
    if (behaviour.store === undefined) return client;
    const { secretOf: productKeyOf } = this.#client;
    const settings = {
      ...this.#client,
      timeoutMs,
      productKeyOf: (id: string) => productKeyOf(id) ?? '',
      accessToken: () => 'token',
    };
    return withLicensesOf(behaviour.store.connect(this.#transport(), settings, clock), client);
  }

  #syncUpstream(): SyncUpstream {
    return upstreamClientOver(this.#transport(), this.#client, this.#parts.clock);
  }

  /** A writer that dies at some commits: before, or just after, and then is silent for ever. */
  #mortalWriter(): Writer {
    const { clock, machine, random, faults, onObserved, onWritten } = this.#parts;
    const writer = localWriter(machine, {
      run: runUseCase,
      isFailure,
      context: () => ({
        now: clock.now(),
        monotonic: clock.monotonic(),
        random,
        digest: (secret) => secret,
        recordsHistory: true,
      }),
    });
    return {
      write: async <Name extends UseCaseName>(
        name: Name,
        command: CommandOf<Name>,
        writeOptions: Partial<WriteOptions> = {},
      ): Promise<CommandResult<Name>> => {
        const dies = !this.isDead && random.chance(faults.crashes);
        if (dies && random.chance(0.5)) this.die();
        if (this.isDead) return await never();
        if (faults.isFull && name !== 'startAgent' && (!isEssential(name) || random.chance(0.3))) {
          throw new StorageError('full', new Error('no room'));
        }
        this.#steps.beforeWrite(name);
        const result = await writer.write(name, command, writeOptions);
        this.#steps.afterWrite(name, result);
        if ('outcome' in command && command.outcome.outcome === 'applied') {
          const { value } = command.outcome;
          if (value !== null && 'licenseKey' in value && machine.holds(value)) onObserved(value);
        }
        onWritten?.();
        if (dies) this.die();
        return this.isDead ? await never() : result;
      },
    };
  }
}

function configuredProducts({ secrets }: Configuration): ConfiguredProduct[] {
  return [...secrets].map(([productKey, secretDigest]) => ({ productKey, secretDigest }));
}

/** Null: the product is not configured. */
function secretOf({ secrets }: Configuration, products: AgentProducts, productId: string): string | null {
  const product = products.configured.find(({ id }) => id === productId);
  return secrets.get(product?.productKey ?? '') ?? null;
}

function settingsOf(
  { writers, onUncertain, concurrency }: Configuration,
  products: AgentProducts,
): SyncOptions {
  return {
    rate: 20,
    concurrency,
    breaker: { failures: 5, openMs: 5_000 },
    unknownMs,
    lookups: { perSecond: 20, maxWaiting: 128 },
    probeMs: 30_000,
    productIds: products.configured.map(({ id }) => id),
    productKeyOf: (id) => products.keyOf(id),
    hasApiKey: true,
    policy: {
      reconcileAfterMs,
      writers,
      onUncertain,
      backoff: { firstMs: 500, maxMs: longestBackoffMs },
      goneMs: 60_000,
      refreshMs,
      graceMs: freshness.graceMs,
    },
  };
}

function never(): Promise<never> {
  return new Promise<never>(noop);
}

function noop(): void {
  // Nothing to do.
}
