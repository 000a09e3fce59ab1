import type { EventResult, StoreEvents, StoreEventStatus } from '../service/store-event.ts';
import type { Reader } from '../../../service/tables.ts';
import type { ReceivedStoreEvents } from '../sync/store-events.ts';
import type { Sync } from '../../../sync/sync.ts';
import { raceWithAbort } from '../../../sync/waiting.ts';
import type { RoleParts } from '../../../daemon/role/role.ts';

type Parts = RoleParts & { reader: Reader; sync: Sync };

/** The receiver of events, and the loop that reads license keys because of them. */
type Loaded = { events: ReceivedStoreEvents; run(signal: AbortSignal): Promise<void> };

/** Receives events of stores. The first event loads the modules: most agents get none. */
export class LazyStoreEvents implements StoreEvents {
  readonly #parts: Parts;
  readonly #first = Promise.withResolvers<Loaded>();
  #loading: Promise<Loaded> | null = null;
  #loaded: Loaded | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async receive(event: Parameters<StoreEvents['receive']>[0]): Promise<EventResult> {
    this.#loading ??= load(this.#parts);
    this.#loaded = await this.#loading;
    this.#first.resolve(this.#loaded);
    return await this.#loaded.events.receive(event);
  }

  status(): StoreEventStatus {
    if (this.#loaded !== null) return this.#loaded.events.status();
    const senders = [...this.#parts.current.senders()].map(([name, { from }]) => ({
      name,
      from,
      lastEventAt: null,
      lastRefusedAt: null,
      lastRefusal: null,
    }));
    return { senders, waitingReads: 0 };
  }

  /** Runs the loop from the first event until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const loaded = await raceWithAbort(this.#first.promise, signal).catch(() => null);
    await loaded?.run(signal);
  }
}

async function load({ current, reader, writer, clock, log, sync, meter }: Parts): Promise<Loaded> {
  const [{ ReceivedStoreEvents: Events }, { HintedReads, hintRate }] = await Promise.all([
    import('../sync/store-events.ts'),
    import('../sync/hinted-reads.ts'),
  ]);
  const reads = new HintedReads({
    clock,
    fetcher: sync.fetcher,
    hastenRefresh: (licenseKey) => writer.write('hastenRefresh', { licenseKey }),
    rate: () => hintRate(current.sync()),
  });
  const events = new Events({
    reader,
    clock,
    log,
    reads,
    fetcher: sync.fetcher,
    senders: () => current.senders(),
    products: () => current.products.configured,
    count: (name, result) => meter.countStoreEvent(name, result),
  });
  return { events, run: (signal) => reads.run(signal) };
}
