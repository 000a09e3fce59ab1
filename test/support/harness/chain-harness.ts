import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { lazySyncServer } from '../../../src/daemon/sync-server.ts';
import { systemRandom } from '../../../src/daemon/system/machine.ts';
import { defaultBackoffPolicy } from '../../../src/domain/outbox/delivery.ts';
import type { LicenseOperationKind } from '../../../src/domain/outbox/operation.ts';
import { defaultBreakerPolicy } from '../../../src/domain/outbox/outcome.ts';
import { isFailure } from '../../../src/service/access/records.ts';
import { agentLicenseService } from '../../../src/service/agent/license.ts';
import { authorityLicenseService } from '../../../src/service/authority/services.ts';
import { protocolOf } from '../../../src/service/outbox/protocol.ts';
import { retryAfterUntil } from '../../../src/service/outbox/queue.ts';
import { runUseCase } from '../../../src/service/run.ts';
import type { LicenseService } from '../../../src/service/services.ts';
import type { SyncServer } from '../../../src/service/sync/ports.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import { ChangeFeed, type Writer } from '../../../src/service/writer.ts';
import { createTables } from '../../../src/store/sqlite/files/migrations.ts';
import { localWriter } from '../../../src/store/sqlite/local-writer.ts';
import { prepareTransaction } from '../../../src/store/sqlite/tables.ts';
import { Sync, type SyncOptions } from '../../../src/sync/sync.ts';
import { KeyedMutex } from '../../../src/sync/waiting.ts';
import { silent, uncounted } from '../silent-log.ts';
import { ChainLink } from './chain-link.ts';
import { valueOf } from './service-harness.ts';
import { VirtualTime, type VirtualClock } from './virtual-clock.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const product = 'press';
const never = new AbortController().signal;
const tenant = { accountId: 'default', productKey: product };

/** One process of a chain: what answers from its store, until it is killed. */
type Process = {
  clock: VirtualClock;
  writer: Writer;
  service: LicenseService;
  server: SyncServer;
  /** Null: an authority. */
  sync: Sync | null;
  ending: AbortController;
};

/** One Latchkey of a chain: a store in memory, and the process on it. */
export class Hop implements Disposable {
  readonly name: string;
  readonly time: VirtualTime;
  /** The way to the hop above; null: this is the authority. */
  readonly link: ChainLink | null;
  store: Transaction;
  options: SyncOptions = defaults;
  #database = new DatabaseSync(':memory:');
  #process: Process;

  constructor(name: string, time: VirtualTime, above: Hop | null) {
    this.name = name;
    this.time = time;
    this.link = above === null ? null : new ChainLink(above, time.clock());
    createTables(this.#database);
    this.store = prepareTransaction(this.#database);
    this.#process = this.#begin(time.clock());
  }

  get clock(): VirtualClock {
    return this.#process.clock;
  }

  get service(): LicenseService {
    return this.#process.service;
  }

  get server(): SyncServer {
    return this.#process.server;
  }

  get writer(): Writer {
    return this.#process.writer;
  }

  get sync(): Sync {
    const { sync } = this.#process;
    if (sync === null) throw new Error('an authority has no sync');
    return sync;
  }

  async start(): Promise<void> {
    const place = { adminTokenDigest: 'd', place: 'here' };
    const { sync, writer, ending } = this.#process;
    if (sync === null) {
      valueOf(await writer.write('startAuthority', { ...place, apiKeyDigest: 'digest' }));
      return;
    }
    const { reconcileAfterMs } = this.options.policy;
    valueOf(await writer.write('startAgent', { ...place, reconcileAfterMs }));
    sync.limiter.waitUntil(retryAfterUntil(this.store));
    sync.limiter.probeNow();
    // The rejection belongs to the process; no test waits for its loops.
    sync.run(ending.signal).catch(() => undefined);
    await this.time.settle();
  }

  /** Kills the process, and starts the next. */
  async restart(): Promise<void> {
    const { clock, ending, server } = this.#process;
    ending.abort();
    server.stopWaiting();
    this.#process = this.#begin(clock.restarted(clock.mark()));
    await this.start();
  }

  backup(): Uint8Array {
    return this.#database.serialize();
  }

  /** Kills the process, and starts the next on a backup, as `latchkey restore` does. */
  async restore(backup: Uint8Array): Promise<void> {
    this.#process.ending.abort();
    this.#process.server.stopWaiting();
    this.#database.close();
    this.#database = new DatabaseSync(':memory:');
    this.#database.deserialize(backup);
    this.store = prepareTransaction(this.#database);
    const { clock } = this.#process;
    this.#process = this.#begin(clock.restarted(clock.mark()));
    valueOf(await this.writer.write('restore', {}));
    await this.start();
  }

  async sell(licenseKey: string): Promise<string> {
    const sale = { buyerEmail: 'a@example.com', soldAt: null, uses: 0, enabled: true };
    const sold = valueOf(
      await this.writer.write('addPurchase', { ...sale, productKey: product, licenseKey }),
    );
    return sold.purchase.purchaseId;
  }

  async change(licenseKey: string, trigger: LicenseOperationKind): Promise<void> {
    const request = { tenant, licenseKey, trigger, waitMs: 0, actor: 'caller', idempotency: null };
    valueOf(await this.#within(this.service.change(request, never)));
  }

  async verify(licenseKey: string): Promise<{ uses: number; enabled: boolean; confirmedAt: number | null }> {
    const { license, provenance } = valueOf(
      await this.#within(Promise.resolve(this.service.verify(tenant, licenseKey, never, null))),
    );
    const confirmedAt = provenance.freshness === 'authoritative' ? this.clock.now() : provenance.confirmedAt;
    return { uses: license.uses, enabled: license.enabled, confirmedAt };
  }

  [Symbol.dispose](): void {
    const { clock, server } = this.#process;
    clock.stop();
    server.stopWaiting();
    this.#database.close();
  }

  async #within<Value>(answer: Promise<Value>): Promise<Value> {
    let isDone = false;
    const finish = (): void => {
      isDone = true;
    };
    answer.then(finish, finish);
    await this.time.runUntil(() => isDone, minute);
    return await answer;
  }

  #begin(clock: VirtualClock): Process {
    const ending = new AbortController();
    const { store, link } = this;
    const { writer, changes } = this.#writerOf(clock);
    const shared = { reader: store, writer, clock, log: silent };
    const random = { ...systemRandom, fraction: () => 0 };
    const serving = { ...shared, changes, random, count: () => undefined };
    if (link === null) {
      const service = authorityLicenseService(store, writer);
      return { clock, writer, service, server: lazySyncServer(serving), sync: null, ending };
    }
    const sync = new Sync({
      ...shared,
      upstream: link,
      syncUpstream: link,
      fraction: () => 0.5,
      meter: uncounted,
      mutex: new KeyedMutex(),
      settings: () => this.options,
      lifetime: ending.signal,
    });
    const freshness = { freshMs: 10 * minute, staleMs: 20 * minute, graceMs: 40 * minute };
    const settings = () => ({ freshness, maxPending: 1_000, timeoutMs: 10 * second, refreshMs: 6 * hour });
    const service = agentLicenseService({
      ...shared,
      fetcher: sync.fetcher,
      deliveries: sync.push,
      productIds: () => this.options.productIds,
      settings,
    });
    const chain = {
      reader: store,
      productIds: () => this.options.productIds,
      settings,
      hasCoupons: () => true,
      coupons: sync.coupons,
      deliveries: sync.push,
      wake: () => sync.push.wake(),
      followNew: () => sync.follow.followNew(),
    };
    return { clock, writer, service, server: lazySyncServer({ ...serving, chain }), sync, ending };
  }

  #writerOf(clock: VirtualClock): { writer: Writer; changes: ChangeFeed } {
    const connection = {
      database: this.#database,
      transaction: this.store,
      [Symbol.dispose]: () => undefined,
    };
    const context = () => ({
      now: clock.now(),
      monotonic: clock.monotonic(),
      random: { ...systemRandom, fraction: () => 0.5 },
      digest: (text: string) => createHash('sha256').update(text).digest('hex'),
      recordsHistory: true,
    });
    const local = localWriter(connection, { run: runUseCase, isFailure, context });
    const changes = new ChangeFeed();
    const writer: Writer = {
      write: (name, command, writeOptions) => {
        const written = local.write(name, command, writeOptions);
        const announce = (): void => changes.announce(['anything']);
        written.then(announce, announce);
        return written;
      },
    };
    return { writer, changes };
  }
}

const defaults: SyncOptions = {
  rate: 50,
  concurrency: 4,
  breaker: defaultBreakerPolicy,
  unknownMs: minute,
  lookups: { perSecond: 2, maxWaiting: 128 },
  probeMs: 30 * second,
  productIds: [product],
  productKeyOf: (id) => id,
  hasApiKey: true,
  policy: {
    reconcileAfterMs: minute,
    writers: 'single',
    onUncertain: 'infer',
    backoff: defaultBackoffPolicy,
    goneMs: minute,
    refreshMs: 6 * hour,
    graceMs: 40 * minute,
  },
};

/** An authority that has sold license keys, an agent below it, and an agent below that. */
export class Chain implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly authority: Hop;
  readonly middle: Hop;
  readonly lowest: Hop;
  /** By license key. */
  readonly purchases: Map<string, string> = new Map<string, string>();
  /** A backup of the middle from before it knew any key. */
  emptyBackup: Uint8Array = new Uint8Array();

  private constructor() {
    this.authority = new Hop('authority', this.time, null);
    this.middle = new Hop('middle', this.time, this.authority);
    this.lowest = new Hop('lowest', this.time, this.middle);
  }

  /** Both agents know the keys, and push to the hop above. */
  static async open(licenseKeys: readonly string[] = ['KEY']): Promise<Chain> {
    const chain = new Chain();
    const { authority, middle, lowest, time } = chain;
    await authority.start();
    const added = {
      name: product,
      recurring: false,
      accountId: 'default',
      productKey: product,
      secret: null,
    };
    valueOf(await authority.writer.write('addProduct', added));
    for (const key of licenseKeys) chain.purchases.set(key, await authority.sell(key));
    await middle.start();
    chain.emptyBackup = middle.backup();
    await lowest.start();
    for (const key of licenseKeys) await lowest.verify(key);
    await time.runUntil(() => protocolOf(lowest.store) === 'latchkey', 5 * minute);
    await time.advance(5 * second);
    return chain;
  }

  async refund(licenseKey: string): Promise<void> {
    const purchaseId = this.purchases.get(licenseKey) ?? '';
    valueOf(await this.authority.writer.write('refundPurchase', { purchaseId }));
  }

  /** What the three say about a license. */
  async uses(licenseKey: string): Promise<number[]> {
    const said = [];
    for (const hop of [this.authority, this.middle, this.lowest])
      said.push((await hop.verify(licenseKey)).uses);
    return said;
  }

  [Symbol.dispose](): void {
    this.lowest[Symbol.dispose]();
    this.middle[Symbol.dispose]();
    this.authority[Symbol.dispose]();
  }
}
