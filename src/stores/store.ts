import type { KeyPage } from '../domain/agent/preload.ts';
import type { StoreName } from '../domain/header-names.ts';
import type { ActivationAttempt } from '../domain/agent/activated-key.ts';
import type { License } from '../domain/license.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Dialect as SentDialect } from '../http/dialects.ts';
import type { Route } from '../http/route.ts';
import type { TakesChange } from '../service/agent/license.ts';
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
  /** Whether it has a request for a change of a license key; absent: for every change. */
  readonly takes?: TakesChange;
  /** The paths of its own API. */
  readonly routes?: (parts: StoreRouteParts) => readonly Route[];
};

/** How to send requests to a store with an API of its own; the functions are called for each request. */
export type ConnectSettings = Omit<SenderSettings, 'dialect'> & {
  baseUrl: string;
  /** How long a request may take. */
  timeoutMs: number;
  /** The name of a product at the store. */
  productKeyOf: (productId: string) => string;
  /** The seller’s access token; null if it is not configured. */
  accessToken: () => string | null;
};

export interface StoreClient extends Upstream, SyncUpstream, AsyncDisposable {
  /** Gives the customer another license key. Nothing waits in the outbox: the caller waits for the answer. */
  rotate?(productId: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<JsonObject>>;
  /** Activates a license key for an installation. Each request makes another activation, so it is sent once. */
  activate?(
    activation: Activation,
    attempt: ActivationAttempt,
    signal: AbortSignal,
  ): Promise<Outcome<Activated>>;
  /** Verifies a license key or an activation under parameters that only the store can check. */
  verifyWith?(
    productId: string,
    asked: Pick<Activation, 'licenseKey' | 'parameters'>,
    signal: AbortSignal,
  ): Promise<Outcome<License>>;
  /** How to find what an attempt has made whose answer is not known; null: the store does not say it to this agent. */
  findsActivations?(attempt: ActivationAttempt): FindActivation | null;
  /** Reads a page of the license keys of a product, which needs an access token. Absent: the store does not list them. */
  listKeys?(productId: string, after: string | null, signal: AbortSignal): Promise<Outcome<KeyPage>>;
}

/** Null: nothing that can be told from other activations. */
export type FindActivation = (
  activation: Activation,
  attempt: ActivationAttempt,
  signal: AbortSignal,
  /** Whether this agent has the activation already. */
  isStored: (activationId: string) => boolean,
) => Promise<Outcome<Activated | null>>;

/** `name`: what the caller calls its installation. */
export type Activation = Pick<ActivationAttempt, 'licenseKey' | 'name'> & {
  productId: string;
  /** Further parameters of the store. */
  parameters?: JsonObject;
};

/** An answer in the form of the store. */
export type Answer = { status: number; body: object };

/** A store’s answer to an activation. */
export type Activated = {
  /** Null: the store refuses the activation. */
  activationId: string | null;
  /** What the answer shows: the license of the activation, and that of the license key. */
  licenses: readonly License[];
  answer: Answer;
};

/** What the routes of a store need besides the app. */
export type StoreRouteParts = Pick<ConnectSettings, 'accessToken'> & {
  client: Pick<StoreClient, 'rotate'>;
  /** Activates a license key while the caller waits. */
  activate: (activation: Activation, caller: AbortSignal) => Promise<Outcome<Activated>>;
  /** Reads a known license key again soon. */
  refresh: (productId: string, licenseKey: string) => void;
  /** Verifies under parameters of the store while the caller waits, and records the answer. */
  verifyWith: (
    productId: string,
    asked: Pick<Activation, 'licenseKey' | 'parameters'>,
    caller: AbortSignal,
  ) => Promise<Outcome<License>>;
  /** Records the license that the answer to another request shows. */
  learnLicense: (productId: string, license: License) => Promise<void>;
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
  lemonsqueezy: () => import('./lemonsqueezy/store.ts'),
  polar: () => import('./polar/store.ts'),
};

/** A store that the configuration names. Only its folder is loaded. */
export async function loadStore(name: StoreName): Promise<Store> {
  return (await folders[name]()).store;
}
