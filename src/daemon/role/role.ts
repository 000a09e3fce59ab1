import { once } from 'node:events';
import type { Blocker } from '../../domain/outbox/explanation.ts';
import type { ProductName } from '../../http/dialects.ts';
import type { Route } from '../../http/route.ts';
import { type Credentials, authorityCredentials, type TokenUses } from '../../service/access/credential.ts';
import type { CheckoutService, CouponService, LicenseService } from '../../service/services.ts';
import {
  authorityCouponService,
  authorityLicenseService,
  authorityCheckoutService,
} from '../../service/authority/services.ts';
import type { Lists, LocalLists, AuthorityReader, Reader } from '../../service/tables.ts';
import type { RoleName } from '../../domain/role.ts';
import { features } from '../../features.ts';
import type { Deliveries, LicenseFetch, Log, SyncControl } from '../../service/ports.ts';
import type { LimiterStatus, UpstreamMeter } from '../../service/status.ts';
import type { FeatureProcess } from '../feature-process.ts';
import type { Writer } from '../../service/writer.ts';
import type { LicenseFetcher } from '../../sync/license-fetcher.ts';
import type { LiveConfiguration } from '../live-configuration.ts';
import type { PersistentClock } from '../system/clock.ts';

/** The parts of a role that the daemon needs. */
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
    blocker(productId: string | null): Blocker | null;
    /** Tries refused credentials again, because they may have changed. */
    retryCredentials(): void;
    /** Probes the upstream, because the machine slept or the configuration changed. */
    probeNow(): void;
  } | null;
  /** Null on an authority. */
  sync: SyncControl | null;
  /** Reads from the upstream and delivers to it; null unless this is an agent. */
  agent: {
    fetcher: LicenseFetch & Pick<LicenseFetcher, 'fetch' | 'learn'>;
    deliveries: Deliveries;
    /** Called when there may be new license keys in the store. */
    newKeys: () => void;
    /** The paths of a store with an API of its own. */
    routes: readonly Route[];
  } | null;
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
    licenseService: authorityLicenseService(reader, writer, clock),
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
    agent: null,
    bind: () => Promise.resolve(),
    async run(signal) {
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
}
