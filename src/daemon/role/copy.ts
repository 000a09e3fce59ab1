import { LRUCache } from 'lru-cache';
import type { Product } from '../../domain/product.ts';
import {
  nameOfCredential,
  type Credentials,
  type Grant,
  type KnownGrants,
  type SentCredential,
} from '../../service/access/credential.ts';
import { authorityLicensing } from '../../service/authority/answers.ts';
import { type Clock, StorageError } from '../../service/ports.ts';
import type { AuthorityReader, Awaitable } from '../../service/tables.ts';
import { isSameDigest, sha256 } from '../system/random.ts';
import { authorityRole, type Role, type RoleParts } from './role.ts';

/** What a copy of an authority has read of credentials and products; never of licenses, and never to decide by. */
export class CopyMemory implements KnownGrants {
  readonly #grants: RecentReads<Grant>;
  readonly #products: RecentReads<Product>;

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#grants = new RecentReads(clock);
    this.#products = new RecentReads(clock);
  }

  forget(): void {
    this.#grants.forget();
    this.#products.forget();
  }

  remembering(credentials: Credentials): Credentials {
    return {
      find: (sent) => this.#grants.read(nameOfCredential(sent), () => credentials.find(sent)),
      use: (grant) => credentials.use(grant),
    };
  }

  grantOf(sent: SentCredential): Grant | null {
    return this.#grants.recall(nameOfCredential(sent));
  }

  /** A reader whose products may be remembered ones. */
  products(reader: AuthorityReader): AuthorityReader {
    const { products } = reader;
    const get: typeof products.get = (productKey) =>
      this.#products.read(productKey, () => products.get(productKey));
    return { ...reader, products: { ...products, get } };
  }
}

/** Builds one of the copies of an authority on one database, which verifies by one read of it. */
export function copyRole(parts: RoleParts & { reader: AuthorityReader; memory: CopyMemory }): Role {
  const { reader, writer, memory } = parts;
  // The database reads lists: nothing waits for them here.
  const role = authorityRole({ ...parts, lists: reader });
  const recent = memory.products(reader);
  return {
    ...role,
    licensing: authorityLicensing(recent, writer),
    productName: async (productKey) => (await recent.products.get(productKey))?.name ?? null,
  };
}

/**
 * The same role, by which the admin token of this copy is known as the database has last told of it, also while that
 * is away: or nobody could ask how the copy stands.
 */
export function knowingOwnToken(role: Role, token: string): Role {
  const { credentials } = role;
  const digest = sha256(token);
  let known: Grant | null = null;
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
    credentials: { find, use: (grant) => credentials.use(grant) },
    async bind() {
      await role.bind();
      await find({ kind: 'bearer', digest });
    },
  };
}

/** How old what is remembered may be, in ms: notices may be lost, and a copy must not go on for longer than this. */
const longestMs = 1_000;
/** How many are remembered: those that were asked for last. */
const most = 10_000;

/** `value`: null until it is read. */
type Recent<Value> = { promise: Promise<Value | null>; value: Value | null; now: number; elapsed: number };

/**
 * What was read within the last second, of which other copies may change something: it lives from the moment in which
 * its read began, so that none is older than that, whoever shares it (src/store/postgres/README.md, Remembering).
 */
export class RecentReads<Value> {
  readonly #recent = new LRUCache<string, Recent<Value>>({ max: most });
  readonly #clock: Pick<Clock, 'now' | 'elapsed'>;

  constructor(clock: Pick<Clock, 'now' | 'elapsed'>) {
    this.#clock = clock;
  }

  /** Gives what was read under a name, or reads it; that there is none is not remembered. */
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

  /** Gives what `read` would give without reading; null: it would read, or wait. */
  recall(name: string): Value | null {
    return this.#at(name, this.#clock.now(), this.#clock.elapsed())?.value ?? null;
  }

  #at(name: string, now: number, elapsed: number): Recent<Value> | undefined {
    const known = this.#recent.get(name);
    // A machine that slept may have had only one of its clocks go on.
    const isRecent =
      known !== undefined && now - known.now < longestMs && elapsed - known.elapsed < longestMs;
    return isRecent ? known : undefined;
  }

  /** Forgets everything, also what is being read now. */
  forget(): void {
    this.#recent.clear();
  }
}
