import type { StoreName } from '../domain/header-names.ts';
import type { License } from '../domain/license.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Dialect as SentDialect } from '../http/dialects.ts';
import type { Route } from '../http/route.ts';
import type { SyncUpstream, Upstream } from '../service/ports.ts';
import type { Dialect as ReceivedDialect } from '../upstream/dialects.ts';
import type { Transport } from '../upstream/exchange.ts';
import type { SenderSettings, UpstreamClock } from '../upstream/sender.ts';
import type { JsonObject } from '../upstream/wire.ts';

/** A kind of store: what it answers as an upstream, and how this process answers software that was written for it. */
export type Store = {
  /** The form of what is sent under `/api`. */
  readonly sent: SentDialect;
  /** How its responses are understood. */
  readonly received: ReceivedDialect;
  /** Its client; absent: that of the specification. */
  readonly connect?: (transport: Transport, settings: ConnectSettings, clock: UpstreamClock) => StoreClient;
  /** The paths of its own API. */
  readonly routes?: (parts: StoreRouteParts) => readonly Route[];
};

/** How to send requests to a store with an API of its own; the functions are called for each request. */
export type ConnectSettings = Omit<SenderSettings, 'dialect'> & {
  baseUrl: string;
  /** The name of a product at the store. */
  productKeyOf: (productId: string) => string;
  /** The seller’s access token; null if it is not configured. */
  accessToken: () => string | null;
};

export interface StoreClient extends Upstream, SyncUpstream, AsyncDisposable {
  /** Gives the customer another license key. Nothing waits in the outbox: the caller waits for the answer. */
  rotate?(productId: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<JsonObject>>;
}

/** What the routes of a store need besides the app. */
export type StoreRouteParts = Pick<ConnectSettings, 'accessToken'> & {
  client: Pick<StoreClient, 'rotate'>;
  /** Records what an answer says about a license key. */
  learn: (
    productId: string,
    licenseKey: string,
    said: Pick<License, 'enabled' | 'extra' | 'expiresAt'>,
  ) => Promise<void>;
};

const folders: Readonly<Record<StoreName, () => Promise<{ store: Store }>>> = {
  specification: () => import('./specification/store.ts'),
  payhip: () => import('./payhip/store.ts'),
  gumroad: () => import('./gumroad/store.ts'),
};

/** A store that the configuration names. Only its folder is loaded. */
export async function loadStore(name: StoreName): Promise<Store> {
  return (await folders[name]()).store;
}
