import { features } from '../features.ts';
import type { Clock, Log, SyncUpstream, Upstream } from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import { CouponSync } from './coupon-sync.ts';
import { type KeyedMutex, persist, Wake } from './waiting.ts';
import type { SyncOptions } from './options.ts';
import { probe, preload, refresh } from './background-reads.ts';
import { LicenseFetcher } from './license-fetcher.ts';
import { DeliveryLoop } from './delivery.ts';
import { UpstreamLimiter } from './upstream-limiter.ts';
import { isLatchkey } from '../service/outbox/upstream/identity.ts';

/**
 * `sync.rate` and `sync.concurrency` spare the stores of others. A Latchkey commits what arrives together at once, and says
 * itself when it has too much to do: 2,000 changes of 20 keys take two thirds of the time with 16 requests at once.
 */
const latchkeyRate = 10_000;
export const latchkeyConcurrency = 4;

/** The settings as they hold for the upstream. Whether it is a Latchkey is read from the store until it is one. */
function forUpstream({ settings, reader }: Pick<SyncParts, 'settings' | 'reader'>): () => SyncOptions {
  let isOfLatchkey = false;
  return () => {
    isOfLatchkey ||= isLatchkey(reader);
    const options = settings();
    if (!isOfLatchkey) return options;
    return { ...options, rate: latchkeyRate, concurrency: latchkeyConcurrency * options.concurrency };
  };
}

export type SyncParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  syncUpstream: SyncUpstream;
  /** In [0, 1), for jitter. */
  fraction: () => number;
  clock: Clock;
  log: Log;
  meter: UpstreamMeter;
  mutex: KeyedMutex;
  settings: () => SyncOptions;
  /** Called when the upstream goes down, and when it answers again or for the first time. */
  onState?: ((state: 'up' | 'down') => void) | undefined;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** How often an agent looks whether its upstream has turned out to be a Latchkey, in ms. */
const lookEveryMs = 1_000;

/** What a feature runs if the upstream is a Latchkey, in addition to the deliveries. */
export type SyncLoop = {
  /** Runs until the signal aborts. Rejects when the store failed. */
  run(signal: AbortSignal): Promise<void>;
  /** Called when there may be new license keys in the store. */
  onNewKeys(): void;
};

export type SyncLoopParts = SyncParts & Pick<Sync, 'limiter' | 'fetcher' | 'delivery'>;

declare module '../feature.ts' {
  interface Feature {
    /** Loaded when the upstream of an agent turns out to be a Latchkey. */
    readonly atLatchkey?: () => Promise<(parts: SyncLoopParts) => SyncLoop>;
  }
}

/** Everything between an agent and its upstream: the delivery loop, reads for callers, and the loops in the background. */
export class Sync {
  readonly limiter: UpstreamLimiter;
  readonly fetcher: LicenseFetcher;
  readonly coupons: CouponSync;
  readonly delivery: DeliveryLoop;
  readonly #parts: SyncParts;
  readonly #partsOfFeatures: SyncLoopParts;
  #loopsOfFeatures: readonly SyncLoop[] = [];
  readonly #probeWake: Wake;
  readonly #preloadWake: Wake;

  constructor(parts: SyncParts) {
    const { clock } = parts;
    this.#parts = parts;
    const settings = forUpstream(parts);
    this.#probeWake = new Wake(clock);
    this.#preloadWake = new Wake(clock);
    this.limiter = new UpstreamLimiter({
      ...parts,
      settings,
      onChange: () => {
        this.#wake();
      },
      onRecovery: () => {
        void this.#recover();
      },
      onRetryAfter: (until) => {
        void this.#storeRetryAfter(until);
      },
    });
    const shared = { ...parts, settings, limiter: this.limiter, policy: () => settings().policy };
    this.fetcher = new LicenseFetcher({
      ...shared,
      unknownMs: () => settings().unknownMs,
      lookups: () => settings().lookups,
      onRead: () => {
        this.delivery.wake();
        this.newKeys();
      },
    });
    this.coupons = new CouponSync(shared);
    this.delivery = new DeliveryLoop({
      ...shared,
      fetcher: this.fetcher,
      coupons: this.coupons,
    });
    this.#partsOfFeatures = { ...shared, fetcher: this.fetcher, delivery: this.delivery };
  }

  /** Runs until the signal aborts, then until requests under way are answered. Rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, lifetime } = this.#parts;
    const shared = { ...this.#parts, limiter: this.limiter, fetcher: this.fetcher };
    const loops = [
      this.delivery.run(signal),
      probe({ ...shared, wake: this.#probeWake }, signal),
      this.#runFeatures(signal),
      preload({ ...shared, wake: this.#preloadWake, productIds: () => settings().productIds }, signal),
      refresh({ ...shared, policy: () => settings().policy }, signal),
    ];
    // A wait that ends because the process ends is no error.
    const unlessEnding = (error: unknown): void => {
      if (!signal.aborted && !lifetime.aborted) throw error;
    };
    await Promise.all(loops.map((loop) => loop.catch(unlessEnding)));
  }

  /** Runs what features do at a Latchkey. */
  async #runFeatures(signal: AbortSignal): Promise<void> {
    const { reader, clock } = this.#parts;
    while (!signal.aborted && !isLatchkey(reader))
      await clock.sleep(lookEveryMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    const begin = await Promise.all(features.map(async ({ atLatchkey }) => await atLatchkey?.()));
    this.#loopsOfFeatures = begin.flatMap((loopOf) => loopOf?.(this.#partsOfFeatures) ?? []);
    await Promise.all(this.#loopsOfFeatures.map((loop) => loop.run(signal)));
  }

  /** Tells features that there may be new license keys in the store. */
  newKeys(): void {
    for (const loop of this.#loopsOfFeatures) loop.onNewKeys();
  }

  /** License keys were queued for preload, or a person resumed sync. */
  wakePreload(): void {
    this.#preloadWake.up();
  }

  async #storeRetryAfter(until: number): Promise<void> {
    // A wait that cannot be stored still holds in this process.
    await this.#parts.writer.write('storeRetryAfter', { until }).catch(() => undefined);
  }

  async #recover(): Promise<void> {
    const { writer, clock, lifetime } = this.#parts;
    // The loops meet any storage error other than a full disk themselves.
    await persist(clock, lifetime, () => writer.write('endOutage', {})).catch(() => undefined);
    this.#wake();
  }

  #wake(): void {
    this.delivery.wake();
    this.#probeWake.up();
  }
}
