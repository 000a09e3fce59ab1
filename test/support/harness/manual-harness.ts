import type { Coupon } from '../../../src/domain/checkout/coupon.ts';
import type { License } from '../../../src/domain/license.ts';
import type { LicenseOperationKind } from '../../../src/domain/outbox/operation.ts';
import type { Applied, Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { CouponPage, StorageError, Upstream } from '../../../src/service/ports.ts';
import { KeyedMutex } from '../../../src/sync/waiting.ts';
import { Sync } from '../../../src/sync/sync.ts';
import { type SyncOptions } from '../../../src/sync/options.ts';
import { HeldLists } from './held-lists.ts';
import { AgentHarness, key, minute, productKey, second, valueOf } from './service-harness.ts';
import { silent, uncounted } from '../silent-log.ts';
import { VirtualTime, type VirtualClock } from './virtual-clock.ts';
import { noSync } from './no-sync.ts';

/** A license request that has arrived at the upstream and waits for an outcome from the test. */
export type Arrived = {
  kind: 'verify' | LicenseOperationKind;
  productKey: string;
  licenseKey: string;
  answer: (outcome: Outcome<License>) => Promise<void>;
};

/** A coupon request that waits for an outcome from the test. */
export type ArrivedCoupon =
  | { kind: 'list'; offset: number; answer: (outcome: Outcome<CouponPage>) => Promise<void> }
  | { kind: 'get'; id: number; answer: (outcome: Outcome<Coupon>) => Promise<void> }
  | { kind: 'create'; code: string; answer: (outcome: Outcome<Coupon>) => Promise<void> };

const never: AbortSignal = new AbortController().signal;

/** An agent and its sync in virtual time, with an upstream that answers when the test tells it to. */
export class ManualHarness extends AgentHarness {
  readonly time: VirtualTime = new VirtualTime();
  readonly mutex: KeyedMutex = new KeyedMutex();
  readonly clock: VirtualClock;
  readonly sync: Sync;
  readonly arrived: Arrived[] = [];
  readonly arrivedCoupons: ArrivedCoupon[] = [];
  readonly lists: HeldLists = new HeldLists();
  /** Its abort ends the loops that a test has started. */
  readonly ending: AbortController = new AbortController();
  /** Aborts the requests in flight. */
  readonly lifetime: AbortController = new AbortController();
  /** The store throws this error instead of accepting a write of the loops. */
  fault: StorageError | null = null;
  /** The warnings in the log. */
  readonly warnings: string[] = [];
  /** Counts of a key that the agent's own operations do not explain. */
  readonly unexpected: Record<string, unknown>[] = [];
  options: Omit<SyncOptions, 'policy'> = {
    rate: 1000,
    concurrency: 4,
    breaker: { failures: 3, openMs: 10 * second },
    unknownMs: minute,
    lookups: { perSecond: 2, maxWaiting: 128 },
    probeMs: minute,
    productIds: [productKey],
    productKeyOf: (id) => id,
    hasApiKey: true,
  };

  constructor() {
    super();
    this.clock = this.time.clock({ wall: this.now });
    this.sync = new Sync({
      // A restart opens the store again.
      reader: new Proxy(this.store, { get: (_, table) => Reflect.get(this.store, table) as unknown }),
      writer: {
        write: (name, command, options) =>
          this.fault === null ? this.writer.write(name, command, options) : Promise.reject(this.fault),
      },
      upstream: this.#upstream(),
      syncUpstream: noSync,
      fraction: () => 0.5,
      clock: this.clock,
      log: {
        ...silent,
        info: (fields, message) => {
          if (message.startsWith('another writer')) this.unexpected.push(fields);
        },
        warn: (fields, message) => {
          this.warnings.push(message);
          if (message.startsWith('another writer')) this.unexpected.push(fields);
        },
      },
      meter: uncounted,
      mutex: this.mutex,
      settings: () => ({ ...this.options, policy: this.policy }),
      lifetime: this.lifetime.signal,
    });
  }

  /** Lets time pass for the store and for every sleeper. */
  async passes(ms: number): Promise<void> {
    const until = this.time.monotonic + ms;
    for (let next = this.time.nextAt(); next !== null && next <= until; next = this.time.nextAt()) {
      await this.#step(next - this.time.monotonic);
    }
    await this.#step(until - this.time.monotonic);
  }

  /** The only request that waits upstream. Throws if there is none, or more than one. */
  async request(): Promise<Arrived> {
    await this.time.settle();
    const [first, ...others] = this.arrived.splice(0);
    if (first === undefined || others.length > 0)
      throw new Error(`${first === undefined ? 'no' : 'more than one'} request has arrived`);
    return first;
  }

  /** The keys of the requests that wait upstream. */
  async requested(): Promise<string[]> {
    await this.time.settle();
    return this.arrived.map(({ kind, licenseKey }) => `${kind} ${licenseKey}`);
  }

  /** The upstream's response for a key that was never used. */
  saysOf(licenseKey: string): Applied<License> {
    const answer = this.says(0);
    return { ...answer, value: { ...answer.value, licenseKey } };
  }

  /** Reads a key for the first time. */
  async learn(licenseKey: string): Promise<void> {
    const { policy, monotonic: sentAt } = this;
    const read = { licenseKey, productId: productKey, outcome: this.saysOf(licenseKey), sentAt };
    const command = { ...read, isMissingConfirmed: true, policy };
    valueOf(await this.writer.write('recordRead', command));
  }

  async #step(ms: number): Promise<void> {
    this.pass(ms);
    await this.time.advance(ms);
  }

  #upstream(): Upstream {
    const held = <Value>(arrive: (answer: (outcome: Outcome<Value>) => Promise<void>) => void) => {
      const { promise, resolve } = Promise.withResolvers<Outcome<Value>>();
      arrive(async (outcome) => {
        resolve(outcome);
        await this.time.settle();
      });
      return promise;
    };
    const ask = (request: Omit<Arrived, 'answer'>): Promise<Outcome<License>> =>
      held((answer) => this.arrived.push({ ...request, answer }));
    return {
      verify: (product, licenseKey) => ask({ kind: 'verify', productKey: product, licenseKey }),
      change: ({ productId: product, licenseKey, kind }) => ask({ kind, productKey: product, licenseKey }),
      createCoupon: ({ code }) =>
        held((answer) => this.arrivedCoupons.push({ kind: 'create', code, answer })),
      getCoupon: (id) => held((answer) => this.arrivedCoupons.push({ kind: 'get', id, answer })),
      listCoupons: (page) =>
        this.lists.answer(page, () =>
          held((answer) => this.arrivedCoupons.push({ kind: 'list', offset: page.offset, answer })),
        ),
      redeem: notLatchkey,
      voidRedemption: notLatchkey,
    };
  }
}

function notLatchkey(): never {
  throw new Error('this upstream is no Latchkey');
}

/** A harness whose agent has read the key with this number of uses. */
export async function createManualHarness({ uses = 5 }: { uses?: number } = {}): Promise<ManualHarness> {
  const harness = new ManualHarness();
  await harness.start();
  await harness.read(harness.says(uses));
  return harness;
}

export { key, never, productKey };
