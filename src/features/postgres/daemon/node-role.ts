import { LRUCache } from 'lru-cache';
import type { Product } from '../../../domain/catalogue.ts';
import {
  cacheKeyOf,
  type CredentialCache,
  type Credentials,
  type KnownCredential,
} from '../../../service/access/credential.ts';
import { authorityLicenseService } from '../../../service/authority/services.ts';
import { type Clock, StorageError } from '../../../service/ports.ts';
import type { AuthorityReader, Awaitable } from '../../../service/tables.ts';
import { authorityRole, type Role, type RoleParts } from '../../../daemon/role/role.ts';
import { isSameDigest, sha256 } from '../../../daemon/system/machine.ts';

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

/** Builds one of the nodes of an authority on one database. A verify reads the database once. */
export function nodeRole(
  parts: RoleParts,
  { reader, cache, adminToken }: { reader: AuthorityReader; cache: NodeCache; adminToken: string },
): Role {
  // The database runs long reads, so lists need no thread.
  const role = authorityRole({ ...parts, reader, lists: reader });
  const cachingReader = cache.products(reader);
  const digest = sha256(adminToken);
  const credentials = withOwnToken(role.credentials, digest);
  return {
    ...role,
    licenseService: authorityLicenseService(cachingReader, parts.writer),
    productName: async (productKey) => (await cachingReader.products.get(productKey))?.name ?? null,
    credentials,
    async bind() {
      await credentials.find({ kind: 'bearer', digest });
    },
  };
}

/** Keeps the admin token of this node valid while the database is unavailable, so that the status can be read. */
function withOwnToken(credentials: Credentials, digest: string): Credentials {
  let last: KnownCredential | null = null;
  return {
    async find(sent) {
      if (!isSameDigest(sent.digest, digest)) return await credentials.find(sent);
      try {
        last = await credentials.find(sent);
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
      }
      return last;
    },
    use: (knownCredential) => credentials.use(knownCredential),
  };
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
