import { LRUCache } from 'lru-cache';
import { countLicenses } from '../../../daemon/store/opened-store.ts';
import type { Product } from '../../../domain/catalogue.ts';
import {
  cacheKeyOf,
  type CredentialCache,
  type Credentials,
  type KnownCredential,
} from '../../../service/access/credential.ts';
import { type Clock, StorageError } from '../../../service/ports.ts';
import type { FreshnessCounts } from '../../../service/status.ts';
import type { AuthorityReader, Awaitable } from '../../../service/tables.ts';

/** The credentials and products that a node of an authority has read. Never licenses, and never used by writes. */
export class NodeCache implements CredentialCache {
  readonly #resolvedCredentials: RecentReads<KnownCredential>;
  readonly #products: RecentReads<Product>;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#resolvedCredentials = new RecentReads(clock);
    this.#products = new RecentReads(clock);
  }

  clear(): void {
    this.#resolvedCredentials.clear();
    this.#products.clear();
  }

  cached(credentials: Credentials): Credentials {
    return {
      find: (sent) => this.#resolvedCredentials.read(cacheKeyOf(sent), () => credentials.find(sent)),
      use: (knownCredential) => credentials.use(knownCredential),
    };
  }

  /** A reader with cached products. */
  products(reader: AuthorityReader): AuthorityReader {
    const { products } = reader;
    const get: typeof products.get = (productKey) =>
      this.#products.read(productKey, () => products.get(productKey));
    return { ...reader, products: { ...products, get } };
  }
}

/** The maximum age of a cached read, in ms: notifications of changes may be lost. */
const maxAgeMs = 1_000;
/** The maximum number of cached reads. */
const maxReads = 10_000;

/** A read, and the time of its start on both clocks. */
type Recent<Value> = { promise: Promise<Value | null>; now: number; monotonic: number };

/** Caches reads for a second from their start: other nodes change data (../store/README.md, Caching). */
export class RecentReads<Value> {
  readonly #recent = new LRUCache<string, Recent<Value>>({ max: maxReads });
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** Returns the cached read of a name, or reads. Does not cache null. */
  async read(name: string, readNow: () => Awaitable<Value | null>): Promise<Value | null> {
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    const cached = this.#at(name, now, monotonic);
    if (cached !== undefined) return await cached.promise;
    const recent: Recent<Value> = { promise: Promise.resolve(readNow()), now, monotonic };
    this.#recent.set(name, recent);
    let value: Value | null = null;
    try {
      value = await recent.promise;
    } finally {
      if (value === null && this.#recent.get(name) === recent) this.#recent.delete(name);
    }
    return value;
  }

  #at(name: string, now: number, monotonic: number): Recent<Value> | undefined {
    const cached = this.#recent.get(name);
    // While a machine sleeps, only one of its clocks may go on.
    const isRecent =
      cached !== undefined && now - cached.now < maxAgeMs && monotonic - cached.monotonic < maxAgeMs;
    return isRecent ? cached : undefined;
  }

  /** Drops everything, including reads in progress. */
  clear(): void {
    this.#recent.clear();
  }
}

/** How long a count is cached at least, in ms. */
const minCachedMs = 10_000;
/** A count is cached this many times as long as it took, so that counting takes a small part of the time. */
const cachedPerDuration = 50;

/**
 * Counts licenses in PostgreSQL, which reads every row: caches a count for a while, shares a running count among its
 * callers, and returns the last count while the database does not answer (null: there is none). Counter rows in the
 * database would make every sale wait for the same row.
 */
export function cachedCounts(
  reader: AuthorityReader,
  { clock, isReadable }: { clock: Pick<Clock, 'monotonic'>; isReadable: () => boolean },
): () => Promise<FreshnessCounts | null> {
  let last: FreshnessCounts | null = null;
  let until = 0;
  let counting: Promise<void> | null = null;
  const count = async (): Promise<void> => {
    const began = clock.monotonic();
    try {
      last = await countLicenses(reader);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    } finally {
      const now = clock.monotonic();
      until = now + Math.max(minCachedMs, (now - began) * cachedPerDuration);
      counting = null;
    }
  };
  return async () => {
    if (clock.monotonic() >= until && isReadable()) await (counting ??= count());
    return last;
  };
}
