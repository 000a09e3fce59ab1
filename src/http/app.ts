import type { RequestListener } from 'node:http';
import type { Readable } from 'node:stream';
import type { Operation } from '../domain/outbox/operation.ts';
import type { Principal } from '../domain/access/principal.ts';
import type { ParameterFault, Result } from '../domain/problem/problem.ts';
import type { ForeignStoreName } from '../domain/header-names.ts';
import type { RoleName } from '../domain/role.ts';
import type { Explanation } from '../domain/outbox/explanation.ts';
import type { Credentials } from '../service/access/credential.ts';
import type { AgentProducts } from '../service/agent/products.ts';
import type { CheckoutService, CouponService, LicenseResponse, LicenseService } from '../service/services.ts';
import type { Announcer, Writer } from '../service/writer.ts';
import type { Digest, Log, SyncControl } from '../service/ports.ts';
import type { Status } from '../service/status.ts';
import type { LongRead } from '../service/long-read.ts';
import type { SnapshotReads } from '../service/agent/tables.ts';
import type { FreshnessPolicy } from '../domain/agent/license-snapshot.ts';
import type { Lists, LocalLists, OperationLists, AuthorityReader, Awaitable } from '../service/tables.ts';
import type { OperationReads } from '../service/outbox/tables.ts';
import type { Dialect, ProductName } from './dialects.ts';
import type { Proxies } from './entry/client-address.ts';

/**
 * Whether this process accepts requests; `leaving`: it does, but no proxy should send more. `reasons` are short codes
 * for people and probes.
 */
export type Readiness = {
  state:
    | 'starting'
    | 'leaving'
    | 'draining'
    | 'storage_failed'
    | 'storage_unavailable'
    | 'store_damaged'
    | 'ready';
  reasons: readonly string[];
};

/** A consistent copy of the store; the reader must read `content` to its end or destroy it. */
export type Backup = { sizeBytes: number; content: Readable };

/** What a reload changed, and what needs a restart; or the errors of the configuration, and nothing changed. */
export type ReloadResult =
  | { ok: true; changed: readonly string[]; restart: readonly string[] }
  | { ok: false; errors: readonly ParameterFault[] };

/** Does what signals do to a process. */
export type ProcessControl = {
  /** Begins to end the process. Returns within how many ms the process ends at the latest. */
  stop(): number;
  reload(): Promise<ReloadResult>;
};

/** The licenses that an agent has stored from its upstream. */
export type StoredLicenses = Pick<SnapshotReads, 'get'> &
  LocalLists['snapshots'] & {
    freshness(): FreshnessPolicy;
    /** The epoch ms of an instant in monotonic ms. */
    dateOf(monotonic: number): number;
    /** How many devices may have a seat of a product; null: any number. */
    seatsOf(productId: string): number | null;
  };

/** What an authority has besides: features add their parts. */
export interface AuthorityParts {}

type CoreAgentParts = {
  /** The outbox. */
  readonly operations: Pick<OperationReads, 'get' | 'depth'> & OperationLists;
  readonly storedLicenses: StoredLicenses;
  readonly sync: SyncControl;
  /** The configured products. An authority has a catalogue of its own. */
  readonly products: Pick<AgentProducts, 'configured' | 'idOf' | 'keyOf' | 'credentialName'>;
};

/** What an agent has besides. A feature adds its own parts. */
export interface AgentParts extends AuthorityParts, CoreAgentParts {}

type CoreHolderParts = {
  /** The name of the credential that a license key is. In other roles, a license key is no credential. */
  readonly licenseCredential: (licenseKey: string) => string;
};

/** What a holder has besides. A feature adds its own parts. */
export interface HolderParts extends CoreHolderParts {}

/** What only some roles have. */
type PartsOfRoles = { authority: AuthorityParts; agent: AgentParts; holder: HolderParts };

type Nullable<Parts> = { [Name in keyof Parts]: Parts[Name] | null };

/** What the routes depend on, in one of these roles: what each of them has is not null. */
export type AppIn<Role extends RoleName> = App & Pick<PartsOfRoles[Role], keyof PartsOfRoles[Role]>;

/** What the core gives its routes. */
export interface CoreApp extends Nullable<CoreAgentParts>, Nullable<CoreHolderParts> {
  readonly role: RoleName;
  /** The upstream that has an API of its own; null: there is none. */
  readonly foreignStore: ForeignStoreName | null;
  readonly version: string;
  /** The id of this store, sent with every response. */
  readonly instance: string;
  /** The history of this store, sent with responses to agents; null: nothing here answers agents yet. */
  epoch(): Awaitable<string | null>;
  readonly dialect: Dialect;
  readonly licenseService: LicenseService;
  readonly couponService: CouponService;
  readonly checkout: CheckoutService;
  readonly reader: AuthorityReader;
  /** Reads whose time grows with the store. */
  readonly lists: Lists;
  /** Reads for a long time, in a thread of its own if the store is local. */
  readonly longRead: LongRead;
  /** Explains the state of an operation of the outbox. */
  explain(operation: Operation): Explanation;
  readonly writer: Writer;
  readonly credentials: Credentials;
  readonly changes: Announcer;
  /**
   * False if each request must reach its route: because a sandbox has added hooks to the server, or because other
   * instances change licenses without announcing it here.
   */
  readonly cachesResponses: boolean;
  readonly rates: RateLimiters;
  readonly productName: ProductName;
  readonly digest: Digest;
  readonly log: Log;
  /** Idempotency keys of the writes in progress. */
  readonly inFlight: Set<string>;
  /** The host name by which the devices of customers know this process; null: none. */
  publicHost?(): string | null;
  /** How many devices have asked for seats of a license, and how many have one. */
  seatsOf?(licenseKey: string): Promise<{ activations: number; seatsTaken: number }>;
  /** Makes a copy of the store; the signal ends it. */
  backup(signal: AbortSignal): Promise<Result<Backup>>;
  /** Epoch ms. */
  now(): number;
  /** Epoch ms that have certainly been reached: expiry is measured by it. */
  verifiedNow(): number;
  /** The instant from which changes of licenses are stored (`history.keep`). */
  historySince(): number;
  /** Writes the new API key of an account to the state directory if the old one is there. */
  saveApiKey(accountId: string, apiKey: string): void;
  /** Proves that this process knows the token in `admin.token` (wire/proof.ts). */
  prove(nonce: string, address: string): string;
  /** Ends and reloads this process; null in a program that embeds it. */
  readonly control: ProcessControl | null;
  status(): Awaitable<Status>;
  readiness(): Readiness;
  /** Why this process is broken and must be restarted; empty: it works. */
  liveness(): readonly string[];
  readonly metrics: AppMetrics;
}

/** What the routes depend on; one for all listeners of a process. A feature adds its own parts. */
export interface App extends CoreApp, Nullable<AgentParts>, Nullable<HolderParts> {}

/** The metrics of this process. */
export interface AppMetrics {
  /** Whether they are readable without a credential (`metrics.open`). */
  isOpen(): boolean;
  /** In Prometheus' text format. */
  expose(): Promise<string>;
  /** When a request began, for `countResponse`. */
  begin(): number;
  /** Counts a response that was sent in front of the pipeline. */
  countResponse(route: string, status: number, begunAt: number): void;
  /** Counts a response to bytes that could not be parsed as a request. */
  countUnrouted(status: number): void;
  /** Counts an answered verify. */
  countVerify(response: LicenseResponse): void;
  /** Counts an answered use. */
  countUse(): void;
}

/** A token bucket for each name. */
export interface RateLimiter {
  /** Takes a token and returns 0. Without a token, returns how many ms to wait for the next. */
  take(name: string): number;
}

/** The rate limits of callers: requests of each credential, and requests with a wrong credential. */
export type RateLimiters = { readonly requests: RateLimiter; readonly failures: RateLimiter };

/** Handles the requests of a listener in their order. */
export type Pipeline = { handle: RequestListener };

/** The limits of a listener (src/http/README.md, Limits). */
export type HttpLimits = {
  readonly headerTimeoutMs: number;
  readonly headerCount: number;
  /** Of the request line and all headers together. */
  readonly headerBytes: number;
  /** The time to receive a request, without the time to answer it. */
  readonly requestTimeoutMs: number;
  readonly bodyBytes: number;
  readonly parameters: number;
  readonly connections: number;
};

/** The settings of one listener. */
export type ServerSettings = {
  readonly listener: 'tcp' | 'socket';
  /** Further request header names, in lower case. */
  readonly headerAliases: { readonly apiKey: readonly string[]; readonly productSecret: readonly string[] };
  /** Names besides loopback that a `Host` may have on TCP: lower case, without port or brackets. */
  readonly allowedHosts: readonly string[];
  /** The origins of web pages that may call the routes for software. */
  readonly allowedOrigins: readonly string[];
  /** The response if there is no verdict on a license key: a problem, or a closed connection. */
  readonly unknown: 'problem' | 'reset';
  readonly limits: HttpLimits;
  /** The certificate of the listener (PEM); null: plain HTTP. */
  readonly tls: { readonly chain: string; readonly key: string } | null;
  /** The principal of a request without a credential (`listen.sockets[].grant`); null: such a request is refused. */
  readonly principal: Principal | null;
  /** The address of the socket or pipe that it listens on (wire/proof.ts); absent: TCP. */
  readonly socketAddress?: (() => string) | undefined;
  /** Whether the listener serves the pages for people: it listens on this machine alone. */
  readonly servesPages?: boolean | undefined;
  /** Absent: the listener serves every route. */
  readonly public?: PublicListener | undefined;
};

/** What is different at `listen.public`. */
export type PublicListener = {
  readonly proxies: Proxies;
  /** The host name of the issuer, which a `Host` may have; null until `lease setup` was run. */
  issuerHost(): string | null;
};
