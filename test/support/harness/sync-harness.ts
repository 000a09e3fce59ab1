import './load-features.ts';
import { DatabaseSync } from 'node:sqlite';
import { defaultBackoffPolicy } from '../../../src/domain/outbox/delivery.ts';
import { defaultBreakerPolicy, type Applied, type Outcome } from '../../../src/domain/outbox/outcome.ts';
import { licenseAfter, type License } from '../../../src/domain/license.ts';
import type { LicenseOperationKind } from '../../../src/domain/outbox/operation.ts';
import { isFailure, type Result } from '../../../src/domain/problem/problem.ts';
import { storedTime } from '../../../src/service/lifecycle/time-mark.ts';
import { agentLicenseService } from '../../../src/service/agent/license.ts';
import type { Coupon, CouponTerms } from '../../../src/domain/checkout/coupon.ts';
import type { Cart, Redemption } from '../../../src/domain/checkout/quote.ts';
import { agentCheckoutService } from '../../../src/service/agent/checkout.ts';
import { agentCouponService } from '../../../src/service/agent/coupon.ts';
import type {
  CheckoutService,
  CouponResponse,
  CouponService,
  LicenseResponse,
  LicenseService,
  QuoteResponse,
  RedemptionResponse,
} from '../../../src/service/services.ts';
import type {
  ChangeRequest,
  CouponPage,
  Keyed,
  StoredRedemption,
  Upstream,
  UpstreamChange,
  UpstreamPage,
  UpstreamRedemption,
  WriteOptions,
} from '../../../src/service/ports.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import type { Writer } from '../../../src/service/writer.ts';
import { runUseCase } from '../../../src/service/run.ts';
import { createTables } from '../../../src/store/sqlite/files/migrations.ts';
import { localWriter } from '../../../src/store/sqlite/commit.ts';
import { prepareTransaction } from '../../../src/store/sqlite/connection.ts';
import { KeyedMutex } from '../../../src/sync/waiting.ts';
import { Sync } from '../../../src/sync/sync.ts';
import { type SyncOptions } from '../../../src/sync/options.ts';
import { silent, uncounted } from '../silent-log.ts';
import { VirtualTime, type VirtualClock } from './virtual-clock.ts';
import { retryAfterUntil } from '../../../src/service/outbox/upstream/waits.ts';
import { isLatchkey } from '../../../src/service/outbox/upstream/identity.ts';
import { buildCart, buildTerms } from '../builders/coupon-builders.ts';
import { CouponAuthority } from './coupon-authority.ts';
import { LatchkeyVendor, lostAnswer } from './latchkey-vendor.ts';
import { noSync } from './no-sync.ts';

export const second = 1000;
export const minute: number = 60 * second;
const hour = 60 * minute;
const never = new AbortController().signal;
const product = 'press';

/** Replaces a response, by request and key. Null: the normal response. */
type Corrupt<Value> = (what: 'verify' | LicenseOperationKind, key: string) => Outcome<Value> | null;

/** An upstream in memory. */
export class Vendor implements Upstream, Disposable {
  readonly licenses: Map<string, License> = new Map<string, License>();
  /** The requests, in order. */
  readonly asked: string[] = [];
  /** How long a response takes. */
  latencyMs = 20;
  /** The response that replaces the change, which is not applied. */
  instead: Corrupt<never> = () => null;
  /** The response that replaces the real response, after the change was applied. */
  loses: Corrupt<License> = () => null;
  /** How long a cache on the way has held the responses to reads, in ms. */
  cachedForMs = 0;
  /** Null: the upstream is no Latchkey. */
  latchkey: LatchkeyVendor | null = null;
  /** The upstream's own spelling of a requested key. */
  spells: (key: string) => string = (key) => key;
  /** Lists of coupons are not answered. */
  hidesCoupons = false;
  /** Keyed requests about coupons do not arrive, or their answers are lost. */
  couponTrouble: 'cut' | 'lost' | null = null;
  /** The keyed requests about coupons, in order. */
  readonly keyedCoupons: Keyed[] = [];
  readonly #clock: VirtualClock;
  #coupons: CouponAuthority | null = null;

  constructor(clock: VirtualClock, keys: readonly string[]) {
    this.#clock = clock;
    for (const licenseKey of keys) {
      const rest = { productKey: 'link', buyerEmail: 'b@example.com', uses: 0, enabled: true, createdAt: 0 };
      this.licenses.set(licenseKey, { licenseKey, ...rest });
    }
  }

  verify(_: string, key: string): Promise<Outcome<License>> {
    return this.#answer('verify', key, (license) => license);
  }

  change(change: UpstreamChange): Promise<Outcome<License>> {
    const { licenseKey, kind } = change;
    if (this.latchkey === null)
      return this.#answer(kind, licenseKey, (license) => licenseAfter(license, kind));
    return this.#answerKeyed(this.latchkey, change);
  }

  async #answerKeyed(latchkey: LatchkeyVendor, change: UpstreamChange): Promise<Outcome<License>> {
    const { licenseKey, kind } = change;
    this.asked.push(`${kind} ${licenseKey}`);
    await this.#clock.sleep(this.latencyMs, never);
    const early = this.instead(kind, licenseKey);
    if (early !== null) return early;
    const result = latchkey.carryOut(change);
    if ('outcome' in result) return result;
    const value = this.licenses.get(licenseKey);
    if (value === undefined) return missing;
    const confirmedAt = this.#clock.now();
    return (
      this.loses(kind, licenseKey) ?? { outcome: 'applied', value, confirmedAt, isCached: false, ...result }
    );
  }

  get coupons(): CouponAuthority {
    return (this.#coupons ??= new CouponAuthority(this.#clock));
  }

  [Symbol.dispose](): void {
    this.#coupons?.[Symbol.dispose]();
  }

  async createCoupon(terms: CouponTerms, { keyed }: ChangeRequest): Promise<Outcome<Coupon>> {
    if (keyed !== undefined)
      return await this.#answerKeyedCoupons('create coupon', keyed, (epoch) =>
        this.coupons.createKeyed(terms, keyed, epoch),
      );
    return await this.#answerCoupons('create coupon', async () => await this.coupons.createCoupon(terms));
  }

  async redeem(redemption: UpstreamRedemption): Promise<Outcome<StoredRedemption>> {
    const { order, keyed } = redemption;
    return await this.#answerKeyedCoupons(`redeem ${order}`, keyed, (epoch) =>
      this.coupons.redeemKeyed(redemption, required(keyed), epoch),
    );
  }

  async voidRedemption({ order, keyed }: ChangeRequest & { order: string }): Promise<Outcome<null>> {
    return await this.#answerKeyedCoupons(`void ${order}`, keyed, (epoch) =>
      this.coupons.voidKeyed(order, required(keyed), epoch),
    );
  }

  async #answerKeyedCoupons<Value>(
    what: string,
    keyed: Keyed | undefined,
    work: (epoch: string) => Promise<Outcome<Value>>,
  ): Promise<Outcome<Value>> {
    if (this.latchkey === null) throw new Error('an agent sends this only to a Latchkey');
    this.asked.push(what);
    this.keyedCoupons.push(required(keyed));
    await this.#clock.sleep(this.latencyMs, never);
    if (this.couponTrouble === 'cut') return lostAnswer;
    const outcome = await work(this.latchkey.epoch);
    return this.couponTrouble === 'lost' ? lostAnswer : outcome;
  }

  async listCoupons({ offset }: UpstreamPage): Promise<Outcome<CouponPage>> {
    return await this.#answerCoupons('list coupons', () => ({
      coupons: offset === 0 ? this.coupons.list() : [],
      unreadable: [],
    }));
  }

  getCoupon(): never {
    throw new Error('this vendor lists all its coupons');
  }

  async #answerCoupons<Value>(what: string, work: () => Value | Promise<Value>): Promise<Outcome<Value>> {
    this.asked.push(what);
    await this.#clock.sleep(this.latencyMs, never);
    if (this.hidesCoupons) return unreachable;
    const value = await work();
    const confirmedAt = this.#clock.now();
    const named = this.latchkey === null ? {} : { epoch: this.latchkey.epoch };
    return { outcome: 'applied', value, confirmedAt, isCached: false, ...named };
  }

  async #answer(
    what: 'verify' | LicenseOperationKind,
    asked: string,
    work: (license: License) => License,
  ): Promise<Outcome<License>> {
    this.asked.push(`${what} ${asked}`);
    const key = this.spells(asked);
    await this.#clock.sleep(this.latencyMs, never);
    const early = this.instead(what, key);
    if (early !== null) return early;
    const license = this.licenses.get(key);
    if (license === undefined) return missing;
    const value = work(license);
    this.licenses.set(key, value);
    const ageMs = what === 'verify' ? this.cachedForMs : 0;
    const confirmedAt = this.#clock.now() - ageMs;
    const named = this.latchkey?.provenanceOf(key) ?? {};
    const applied: Applied<License> = {
      outcome: 'applied',
      value,
      confirmedAt,
      isCached: ageMs > 0,
      ...named,
    };
    return this.loses(what, key) ?? applied;
  }
}

function required(keyed: Keyed | undefined): Keyed {
  if (keyed === undefined) throw new Error('an agent sends this to a Latchkey under an id');
  return keyed;
}

const unreachable: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unreachable',
  status: null,
  detail: 'connection refused',
  retryAfterMs: null,
};

const missing: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'missing',
  status: 404,
  detail: 'HTTP 404',
  retryAfterMs: null,
};

type Process = {
  sync: Sync;
  licenseService: LicenseService;
  couponService: CouponService;
  checkout: CheckoutService;
  writer: Writer;
  ending: AbortController;
};

/** An agent's service, loops and store in this process, in virtual time, with a vendor in memory. */
export class SyncHarness implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly vendor: Vendor;
  #clock: VirtualClock = this.time.clock();
  #process: Process;
  readonly #database = new DatabaseSync(':memory:');
  readonly store: Transaction;
  readonly #options: SyncOptions;
  /** The change feed of the vendor; null: the vendor is a plain store. */
  readonly latchkey: LatchkeyVendor | null;

  /** Use `startSyncHarness`. */
  constructor(keys: readonly string[], options: Partial<SyncOptions>, isOfLatchkey = false) {
    createTables(this.#database);
    this.store = prepareTransaction(this.#database);
    this.vendor = new Vendor(this.time.clock(), keys);
    this.latchkey = isOfLatchkey ? new LatchkeyVendor(this.vendor, this.time.clock()) : null;
    this.vendor.latchkey = this.latchkey;
    this.#options = { ...defaults, ...options };
    this.#process = this.#made();
  }

  /** The time of the agent, in epoch ms. */
  get wall(): number {
    return this.#clock.now();
  }

  get sync(): Sync {
    return this.#process.sync;
  }

  get licenseService(): LicenseService {
    return this.#process.licenseService;
  }

  get checkout(): CheckoutService {
    return this.#process.checkout;
  }

  get couponService(): CouponService {
    return this.#process.couponService;
  }

  get writer(): Writer {
    return this.#process.writer;
  }

  /** Starts the process: opens the store and runs the loops. */
  async start(): Promise<void> {
    await this.writer.write('startAgent', {
      adminTokenDigest: 'd',
      place: 'here',
      reconcileAfterMs: this.#options.policy.reconcileAfterMs,
    });
    this.sync.limiter.waitUntil(retryAfterUntil(this.store));
    // The rejection belongs to the process; no test waits for its loops.
    this.sync.run(this.#process.ending.signal).catch(() => undefined);
    await this.time.settle();
  }

  /** Kills and restarts the process, after the wall clock was changed by `turnedByMs`. */
  async restart({ turnedByMs = 0 }: { turnedByMs?: number } = {}): Promise<void> {
    const wall = this.#clock.reading().wall + turnedByMs;
    this.#clock.stop();
    this.#clock = this.time.clock({ wall, mark: await storedTime(this.store) });
    this.#process = this.#made();
    await this.start();
  }

  async verify(licenseKey: string, requester: string | null = null): Promise<Result<LicenseResponse>> {
    return await this.within(this.ask(licenseKey, requester));
  }

  /** Verifies a key without letting time pass. */
  ask(
    licenseKey: string,
    requester: string | null,
    signal: AbortSignal = never,
    connection = '',
  ): Promise<Result<LicenseResponse>> {
    const caller = requester === null ? null : { credential: requester, connection };
    return this.licenseService.verify(allProducts, licenseKey, signal, caller);
  }

  /** Ends the process and aborts the running requests. */
  end(): void {
    this.#process.ending.abort();
  }

  async change(
    licenseKey: string,
    trigger: LicenseOperationKind,
    { waitMs = 0, idempotencyKey = null }: { waitMs?: number; idempotencyKey?: string | null } = {},
  ): Promise<Result<LicenseResponse>> {
    const idempotency =
      idempotencyKey === null ? null : { credential: 'c', key: idempotencyKey, fingerprint: 'f' };
    const request = { tenant, licenseKey, trigger, waitMs, actor: null, idempotency };
    return await this.within(this.licenseService.change(request, never));
  }

  /** An agent below sends an enable whose caller saw the license at a revision of this agent. */
  async enableFromBelow(id: string, licenseKey: string, seen: number): Promise<Result<LicenseResponse>> {
    const caller = fromBelow(id, `enable ${licenseKey}`, seen);
    const { keyed = null } = caller.idempotency ?? {};
    const request = { tenant, licenseKey, trigger: 'enable', waitMs: 0, ...caller, keyed } as const;
    return await this.within(this.licenseService.change(request, never));
  }

  async quote(cart: Cart = buildCart({})): Promise<Result<QuoteResponse>> {
    return await this.within(this.checkout.quote('default', cart, never));
  }

  async redeem(
    order: string,
    cart: Cart = buildCart({}),
    idempotencyKey: string | null = null,
  ): Promise<Result<RedemptionResponse>> {
    return await this.within(this.beginRedeem(order, cart, idempotencyKey));
  }

  /** An agent below sends a redemption; `answeredAt`: when it answered its caller. */
  async redeemFromBelow(
    order: string,
    { id, answeredAt = null, cart = buildCart({}) }: { id: string; answeredAt?: number | null; cart?: Cart },
  ): Promise<Result<RedemptionResponse>> {
    const command = { accountId: 'default', order, cart, takenAt: answeredAt };
    return await this.within(this.checkout.redeem(command, fromBelow(id, `redeem ${order}`), never));
  }

  async voidFromBelow(order: string, id: string): Promise<Result<unknown>> {
    const caller = fromBelow(id, `void ${order}`);
    return await this.within(this.checkout.void({ accountId: 'default', order }, caller, never));
  }

  async createCouponFromBelow(changes: Partial<CouponTerms>, id: string): Promise<Result<CouponResponse>> {
    const terms = buildTerms(changes);
    const caller = fromBelow(id, `coupon ${terms.code}`);
    return await this.within(this.couponService.create('default', terms, caller, never));
  }

  /** Redeems without letting time pass. */
  beginRedeem(
    order: string,
    cart: Cart = buildCart({}),
    idempotencyKey: string | null = null,
  ): Promise<Result<RedemptionResponse>> {
    const idempotency =
      idempotencyKey === null ? null : { credential: 'c', key: idempotencyKey, fingerprint: 'f' };
    const caller = { actor: null, requestId: null, idempotency };
    return this.checkout.redeem({ accountId: 'default', order, cart }, caller, never);
  }

  async void(order: string): Promise<Result<unknown>> {
    const caller = { actor: null, requestId: null, idempotency: null };
    return await this.within(this.checkout.void({ accountId: 'default', order }, caller, never));
  }

  async createCoupon(changes: Partial<CouponTerms>): Promise<Result<CouponResponse>> {
    const caller = { actor: null, requestId: null, idempotency: null };
    return await this.within(this.couponService.create('default', buildTerms(changes), caller, never));
  }

  redemption(order: string): Redemption | null {
    return this.store.redemptions.get('default', order);
  }

  [Symbol.dispose](): void {
    this.vendor[Symbol.dispose]();
    this.#clock.stop();
    this.#database.close();
  }

  /** Lets time pass until there is an answer. */
  async within<Value>(answer: Promise<Value>): Promise<Value> {
    let isDone = false;
    void answer.finally(() => {
      isDone = true;
    });
    await this.time.runUntil(() => isDone, minute);
    return await answer;
  }

  #made(): Process {
    const clock = this.#clock;
    const ending = new AbortController();
    let ids = this.time.monotonic;
    const random = {
      bytes: (count: number) => new Uint8Array(count).fill((ids += 1) % 256),
      uuid: () => `0197a000-0000-7000-8000-${(ids += 1).toString(16).padStart(12, '0')}`,
      fraction: () => 0.5,
    };
    const context = () => ({
      now: clock.now(),
      monotonic: clock.monotonic(),
      random,
      digest: (text: string) => text,
      recordsHistory: true,
    });
    const connection = {
      database: this.#database,
      transaction: this.store,
      [Symbol.dispose]: () => undefined,
    };
    const writer = localWriter(connection, { run: runUseCase, isFailure, context });
    const freshness = {
      freshMs: 24 * hour,
      staleMs: 48 * hour,
      graceMs: 96 * hour,
      expiryGraceMs: 24 * hour,
    };
    const settings = {
      freshness,
      refreshMs: 6 * hour,
      unknownMs: minute,
      maxPending: 1000,
      timeoutMs: 10 * second,
    };
    const shared = { reader: this.store, writer, clock, log: silent };
    const sync = new Sync({
      ...shared,
      upstream: this.vendor,
      syncUpstream: this.latchkey ?? noSync,
      fraction: () => 0.5,
      meter: uncounted,
      mutex: new KeyedMutex(),
      settings: () => this.#options,
      lifetime: ending.signal,
    });
    const licenseService = agentLicenseService({
      ...shared,
      fetcher: sync.fetcher,
      deliveries: sync.delivery,
      productIds: () => this.#options.productIds,
      settings: () => settings,
    });
    const coupons = {
      ...shared,
      lists: this.store,
      fetcher: sync.coupons,
      deliveries: sync.delivery,
      isConfigured: () => true,
      settings: () => settings,
    };
    const couponService = agentCouponService(coupons);
    const checkout = agentCheckoutService(coupons);
    return { sync, licenseService, couponService, checkout, writer, ending };
  }
}

function fromBelow(id: string, fingerprint: string, seenRevision: number | null = null): WriteOptions {
  const keyed = { id, createdAt: 0, epoch: null, isRepeat: false, seenRevision };
  return {
    actor: 'agent',
    requestId: null,
    idempotency: { credential: 'tenant', key: id, fingerprint, keyed },
  };
}

const allProducts = { accountId: 'default', productKey: null };
const tenant = { accountId: 'default', productKey: product };

export const defaultPolicy: SyncOptions['policy'] = {
  reconcileAfterMs: minute,
  writers: 'single',
  onUncertain: 'infer',
  backoff: defaultBackoffPolicy,
  goneMs: minute,
  refreshMs: 6 * hour,
  graceMs: 96 * hour,
};

const defaults: SyncOptions = {
  rate: 5,
  concurrency: 4,
  breaker: defaultBreakerPolicy,
  unknownMs: minute,
  lookups: { perSecond: 2, maxWaiting: 128 },
  probeMs: 30 * second,
  productIds: [product],
  productKeyOf: (id) => id,
  hasApiKey: true,
  policy: defaultPolicy,
};

/** Starts an agent over a vendor that knows these keys. */
export async function startSyncHarness(
  keys: readonly string[],
  options: Partial<SyncOptions> = {},
): Promise<SyncHarness> {
  const harness = new SyncHarness(keys, options);
  await harness.start();
  return harness;
}

/** Starts an agent over a Latchkey that knows these keys. The agent has verified all of them. */
export async function startLatchkeyHarness(
  keys: readonly string[],
  options: Partial<SyncOptions> = {},
  read = keys,
): Promise<SyncHarness & { latchkey: LatchkeyVendor }> {
  const harness = new SyncHarness(keys, options, true);
  await harness.start();
  for (const licenseKey of read) await harness.verify(licenseKey);
  await harness.time.runUntil(() => isLatchkey(harness.store), 5 * minute);
  return harness as SyncHarness & { latchkey: LatchkeyVendor };
}
