import type { Secret } from './secret.ts';

/**
 * Everything that an operator decides, complete and typed (configuration contract).
 *
 * Names ending in `Ms` are milliseconds, in `Bytes` bytes; rates are requests a second; `null` is
 * "switched off" or "not given". Paths are absolute.
 */
export interface Configuration {
  /** An agent has an upstream, an authority has none. */
  readonly role: 'authority' | 'agent';
  readonly stateDir: string;
  readonly listen: ListenSettings;
  readonly upstream: UpstreamSettings | null;
  readonly products: readonly ProductSettings[];
  readonly freshness: FreshnessSettings;
  readonly sync: SyncSettings;
  readonly limits: LimitSettings;
  readonly metrics: { readonly open: boolean };
  readonly log: { readonly level: LogLevel; readonly format: 'json' | 'pretty' };
}

export interface ListenSettings {
  readonly tcp: Address | null;
  readonly socket: string | null;
  /** Permission bits, as in `chmod`. */
  readonly socketMode: number;
  readonly sockets: readonly SocketSettings[];
  /** Further request header names, in lower case. */
  readonly headerAliases: { readonly apiKey: readonly string[]; readonly productSecret: readonly string[] };
  readonly allowRemote: boolean;
  /** Lower case, without port; an IPv6 address without brackets. */
  readonly allowedHosts: readonly string[];
}

/** Where to listen on TCP; an IPv6 host has no brackets, port 0 is any free one. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface SocketSettings {
  readonly path: string;
  readonly mode: number;
  /** A group's name or number. */
  readonly group: string | null;
  /** What every caller of this socket may do without a credential. */
  readonly grant: Grant | null;
}

export interface Grant {
  readonly scopes: readonly GrantScope[];
  /** A product key, or `null` for every product. */
  readonly product: string | null;
}

export type GrantScope = 'verify' | 'use' | 'manage' | 'coupons:read' | 'coupons:write';

export interface UpstreamSettings {
  /** Without a trailing slash; `/api/v2/…` is appended. */
  readonly baseUrl: string;
  readonly apiKey: Secret | null;
  /** The header names that carry our credentials, in lower case. */
  readonly headers: { readonly apiKey: string; readonly productSecret: string };
  readonly timeoutMs: number;
  readonly probeMs: number;
  readonly caFile: string | null;
  /** A URL, which may carry a password. */
  readonly proxy: Secret | null;
}

export interface ProductSettings {
  readonly key: string;
  readonly secret: Secret;
}

export interface FreshnessSettings {
  readonly freshMs: number;
  readonly staleMs: number;
  readonly graceMs: number;
  readonly refreshMs: number;
  readonly unknownMs: number;
  readonly goneMs: number;
}

export interface SyncSettings {
  readonly rate: number;
  readonly lanes: number;
  readonly fenceMs: number;
  readonly writers: 'many' | 'single';
  readonly onDoubt: 'infer' | 'hold';
  readonly maxPending: number;
  readonly backoff: { readonly firstMs: number; readonly maxMs: number };
  readonly breaker: { readonly failures: number; readonly openMs: number };
}

export interface LimitSettings {
  readonly headerTimeoutMs: number;
  readonly headerCount: number;
  readonly headerBytes: number;
  readonly requestTimeoutMs: number;
  readonly bodyBytes: number;
  readonly importBytes: number;
  readonly parameters: number;
  readonly connections: number;
  /** 0: no limit. */
  readonly rate: number;
  readonly misses: number;
  readonly failedRate: number;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
