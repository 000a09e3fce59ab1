import { once } from 'node:events';
import { LRUCache } from 'lru-cache';
import type { Blocker } from '../../domain/outbox/explanation.ts';
import type { ProductName } from '../../http/dialects.ts';
import {
  type Credentials,
  authorityCredentials,
  cacheKeyOf,
  type KnownCredential,
  type CredentialCache,
  type TokenUses,
} from '../../service/access/credential.ts';
import type { CheckoutService, CouponService, LicenseService } from '../../service/services.ts';
import {
  authorityCouponService,
  authorityLicenseService,
  authorityCheckoutService,
} from '../../service/authority/services.ts';
import type { ChainParts } from '../../features/following/service/chain-store.ts';
import type { Lists, LocalLists, AuthorityReader, Awaitable, Reader } from '../../service/tables.ts';
import type { Product } from '../../domain/catalogue.ts';
import type { RoleName } from '../../domain/role.ts';
import { features } from '../../features.ts';
import {
  type Clock,
  type Deliveries,
  type LicenseFetch,
  type Log,
  StorageError,
  type SyncControl,
} from '../../service/ports.ts';
import type { LimiterStatus, UpstreamMeter } from '../../service/status.ts';
import type { FeatureProcess } from '../feature-process.ts';
import type { Writer } from '../../service/writer.ts';
import type { LicenseFetcher } from '../../sync/license-fetcher.ts';
import type { LiveConfiguration } from '../live-configuration.ts';
import { type PersistentClock, isSameDigest, sha256 } from '../system/machine.ts';

/** The parts of an agent or authority that the daemon needs. */
export type Role = {
  licenseService: LicenseService;
  couponService: CouponService;
  checkout: CheckoutService;
  credentials: Credentials;
  productName: ProductName;
  /** Null on an authority. */
  upstream: {
    status(): LimiterStatus;
    /** What blocks all requests with the secret of a product (null: with the API key). */
    blocker(productKey: string | null): Blocker | null;
    /** Tries refused credentials again, because they may have changed. */
    retryCredentials(): void;
    /** Probes the upstream, because the machine slept or the configuration changed. */
    probeNow(): void;
  } | null;
  /** Null on an authority. */
  sync: SyncControl | null;
  /** Answers the agents below this agent; null unless this is an agent. */
  chain: (ChainParts & { reader: Reader }) | null;
  /** Reads from the upstream and delivers to it; null unless this is an agent. */
  agent: { fetcher: LicenseFetch & Pick<LicenseFetcher, 'fetch'>; deliveries: Deliveries } | null;
  /** What only this role of a feature has. */
  process?: FeatureProcess;
  /** Records the configuration in the store: at the start, before any request is answered, and after a reload. */
  bind(): Promise<void>;
  /** Runs the loops until the signal. Rejects if the store fails. */
  run(signal: AbortSignal): Promise<void>;
};

export type RoleParts = {
  /** The id of this store. */
  instance: string;
  current: LiveConfiguration;
  writer: Writer;
  clock: PersistentClock;
  log: Log;
  meter: UpstreamMeter;
  tokenUses: TokenUses;
  /** Ends requests in flight. */
  lifetime: AbortSignal;
};

/** Builds a role on a local store. */
export type BuildRole = (parts: RoleParts & { reader: Reader; lists: LocalLists }) => Role | Promise<Role>;

declare module '../../feature.ts' {
  interface Feature {
    /** Roles of a process that it adds, and how to build one. */
    readonly roles?: { readonly [Name in RoleName]?: () => Promise<BuildRole> };
  }
}

/** Each role loads its own modules only. */
export async function loadRole(role: RoleName): Promise<BuildRole> {
  if (role === 'authority') return authorityRole;
  if (role === 'agent') return (await import('./agent.ts')).agentRole;
  const build = await features.map(({ roles }) => roles?.[role]?.()).find((loading) => loading !== undefined);
  if (build === undefined) throw new Error(`no feature has the role ${role}`);
  return build;
}

/** Builds an authority, which answers from its own store and has no upstream. */
export function authorityRole({
  reader,
  lists,
  writer,
  clock,
  tokenUses: uses,
}: RoleParts & { reader: AuthorityReader; lists: Lists }): Role {
  return {
    licenseService: authorityLicenseService(reader, writer),
    couponService: authorityCouponService(reader, writer, lists),
    checkout: authorityCheckoutService(reader, writer, clock),
    credentials: authorityCredentials({
      reader,
      verifiedNow: () => clock.verified(),
      uses,
    }),
    productName: async (productKey) => (await reader.products.get(productKey))?.name ?? null,
    upstream: null,
    sync: null,
    chain: null,
    agent: null,
    bind: () => Promise.resolve(),
    async run(signal) {
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
}

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
  parts: RoleParts & { reader: AuthorityReader; cache: NodeCache; adminToken: string },
): Role {
  const { reader, writer, cache } = parts;
  // The database runs long reads, so lists need no thread.
  const role = authorityRole({ ...parts, lists: reader });
  const cachingReader = cache.products(reader);
  const digest = sha256(parts.adminToken);
  const credentials = withOwnToken(role.credentials, digest);
  return {
    ...role,
    licenseService: authorityLicenseService(cachingReader, writer),
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

/** Caches reads for a second from their start: other nodes change data (src/features/postgres/store/README.md, Caching). */
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
