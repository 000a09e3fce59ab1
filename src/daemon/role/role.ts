import { once } from 'node:events';
import type { Blocker } from '../../domain/outbox/explanation.ts';
import type { ProductName } from '../../http/dialects/dialect.ts';
import { type Credentials, authorityCredentials } from '../../service/access/credential.ts';
import type { TokenUses } from '../../service/access/token.ts';
import type { Checkout, Couponing, Licensing } from '../../service/answers.ts';
import { authorityCouponing, authorityLicensing } from '../../service/authority/answers.ts';
import { authorityCheckout } from '../../service/authority/checkout.ts';
import type { Lists } from '../../service/lists.ts';
import type { Log, SyncControl } from '../../service/ports.ts';
import type { UpstreamMeter, UpstreamStatus } from '../../service/status.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import type { Writer } from '../../service/writer.ts';
import type { LiveConfiguration } from '../live-configuration.ts';
import type { PersistentClock } from '../system/clock.ts';

/** The parts of an agent or authority that the daemon needs. */
export type Role = {
  licensing: Licensing;
  couponing: Couponing;
  checkout: Checkout;
  credentials: Credentials;
  productName: ProductName;
  /** Null on an authority. */
  upstream: {
    status(): Omit<UpstreamStatus, 'proxy'>;
    /** What blocks all requests with the secret of a product (null: with the API key). */
    blocker(productKey: string | null): Blocker | null;
    /** Tries refused credentials again, because they may have changed. */
    retryCredentials(): void;
    /** Probes the upstream, because the machine slept or the configuration changed. */
    probeNow(): void;
  } | null;
  /** Null on an authority. */
  sync: SyncControl | null;
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

/** Builds an authority, which answers from its own store and has no upstream. */
export function authorityRole({
  reader,
  lists,
  writer,
  clock,
  tokenUses: uses,
}: RoleParts & { reader: AuthorityReader; lists: Lists }): Role {
  return {
    licensing: authorityLicensing(reader, writer),
    couponing: authorityCouponing(reader, writer, lists),
    checkout: authorityCheckout(reader, writer, clock),
    credentials: authorityCredentials({
      reader,
      verifiedNow: () => clock.verified(),
      uses,
    }),
    productName: async (productKey) => (await reader.products.get(productKey))?.name ?? null,
    upstream: null,
    sync: null,
    bind: () => Promise.resolve(),
    async run(signal) {
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
}
