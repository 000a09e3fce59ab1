import { LRUCache } from 'lru-cache';
import type { Product } from '../../domain/product.ts';
import {
  cacheKeyOf,
  type Credentials,
  type ResolvedCredential,
  type CredentialCache,
} from '../../service/access/credential.ts';
import { authorityLicensing } from '../../service/authority/answers.ts';
import { type Clock, StorageError } from '../../service/ports.ts';
import type { AuthorityReader, Awaitable } from '../../service/tables.ts';
import { isSameDigest, sha256 } from '../system/random.ts';
import { authorityRole, type Role, type RoleParts } from './role.ts';

/** The credentials and products that a node of an authority has read. Never licenses, and never used by writes. */
export class NodeCache implements CredentialCache {
  readonly #resolvedCredentials: RecentReads<ResolvedCredential>;
  readonly #products: RecentReads<Product>;

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#resolvedCredentials = new RecentReads(clock);
    this.#products = new RecentReads(clock);
  }

  forget(): void {
    this.#resolvedCredentials.forget();
    this.#products.forget();
  }

  cached(credentials: Credentials): Credentials {
    return {
      find: (sent) => this.#resolvedCredentials.read(cacheKeyOf(sent), () => credentials.find(sent)),
      use: (resolvedCredential) => credentials.use(resolvedCredential),
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
export function nodeRole(parts: RoleParts & { reader: AuthorityReader; memory: NodeCache }): Role {
  const { reader, writer, memory } = parts;
  // The database runs long reads, so lists need no thread.
  const role = authorityRole({ ...parts, lists: reader });
  const recent = memory.products(reader);
  return {
    ...role,
    licensing: authorityLicensing(recent, writer),
    productName: async (productKey) => (await recent.products.get(productKey))?.name ?? null,
  };
}

/** Keeps the admin token of this node valid while the database is unavailable, so that the status can be read. */
export function knowingOwnToken(role: Role, token: string): Role {
  const { credentials } = role;
  const digest = sha256(token);
  let known: ResolvedCredential | null = null;
  const find: typeof credentials.find = async (sent) => {
    if (!isSameDigest(sent.digest, digest)) return await credentials.find(sent);
    try {
      known = await credentials.find(sent);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    }
    return known;
  };
  return {
    ...role,
    credentials: { find, use: (resolvedCredential) => credentials.use(resolvedCredential) },
    async bind() {
      await role.bind();
      await find({ kind: 'bearer', digest });
    },
  };
}

/** The maximum age of a cached read, in ms: notifications of changes may be lost. */
const longestMs = 1_000;
/** The maximum number of cached reads. */
const most = 10_000;

/** `value`: null until the read ends. */
type Recent<Value> = { promise: Promise<Value | null>; value: Value | null; now: number; elapsed: number };

/**
 * Caches reads for up to a second, because other nodes may change the data. The age counts from the start of the read,
 * so a shared result is never older than a second (src/store/postgres/README.md, Remembering).
 */
export class RecentReads<Value> {
  readonly #recent = new LRUCache<string, Recent<Value>>({ max: most });
  readonly #clock: Pick<Clock, 'now' | 'elapsed'>;

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#clock = clock;
  }

  /** Returns the cached read of a name, or reads. Does not cache null. */
  async read(name: string, readNow: () => Awaitable<Value | null>): Promise<Value | null> {
    const now = this.#clock.now();
    const elapsed = this.#clock.elapsed();
    const known = this.#at(name, now, elapsed);
    if (known !== undefined) return await known.promise;
    const recent: Recent<Value> = { promise: Promise.resolve(readNow()), value: null, now, elapsed };
    this.#recent.set(name, recent);
    try {
      recent.value = await recent.promise;
    } finally {
      if (recent.value === null && this.#recent.get(name) === recent) this.#recent.delete(name);
    }
    return recent.value;
  }

  /** Returns the cached value; null if `read` would have to read or wait. */
  recall(name: string): Value | null {
    return this.#at(name, this.#clock.now(), this.#clock.elapsed())?.value ?? null;
  }

  #at(name: string, now: number, elapsed: number): Recent<Value> | undefined {
    const known = this.#recent.get(name);
    // While a machine sleeps, only one of its clocks may go on.
    const isRecent =
      known !== undefined && now - known.now < longestMs && elapsed - known.elapsed < longestMs;
    return isRecent ? known : undefined;
  }

  /** Drops everything, including reads in progress. */
  forget(): void {
    this.#recent.clear();
  }
}
