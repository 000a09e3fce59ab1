import type { StoreEventStatus } from '../../../service/status.ts';
import type { EventResult, StoreEvents } from '../service/store-event.ts';
import type { Reader } from '../../../service/tables.ts';
import type { ReceivedStoreEvents, StoreEventSource } from '../sync/store-events.ts';
import { raceWithAbort } from '../../../sync/waiting.ts';
import { logOf } from '../../../daemon/log.ts';
import type { Role } from '../../../daemon/role/role.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';

type Parts = Pick<OpenedStore, 'current' | 'writer' | 'clock' | 'log'> &
  Pick<NonNullable<Role['agent']>, 'fetcher'> & {
    reader: Reader;
    count: (name: string, result: EventResult) => void;
  };

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
    const senders = [...sendersOf(this.#parts)].map(([name, { from }]) => ({
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

/** The stores whose events are accepted, by name. */
function sendersOf({ current }: Parts): ReadonlyMap<string, StoreEventSource> {
  const senders = Object.entries(current.configuration.webhooks.in);
  return new Map(senders.map(([name, { from, secret }]) => [name, { from, secret: secret.reveal() }]));
}

async function load(parts: Parts): Promise<Loaded> {
  const { current, reader, writer, clock, log, fetcher, count } = parts;
  const [{ ReceivedStoreEvents: Events }, { HintedReads, hintRate }] = await Promise.all([
    import('../sync/store-events.ts'),
    import('../sync/hinted-reads.ts'),
  ]);
  const reads = new HintedReads({
    clock,
    fetcher,
    hastenRefresh: (licenseKey) => writer.write('hastenRefresh', { licenseKey }),
    rate: () => hintRate(current.sync()),
  });
  const events = new Events({
    reader,
    clock,
    log: logOf(log, 'sync'),
    reads,
    fetcher,
    senders: () => sendersOf(parts),
    products: () => current.products.configured,
    count,
  });
  return { events, run: (signal) => reads.run(signal) };
}
