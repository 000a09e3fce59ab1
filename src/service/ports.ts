import type { Coupon, CouponTerms } from '../domain/checkout/coupon.ts';
import type { Cart, Quote } from '../domain/checkout/quote.ts';
import type { KeyPage } from '../domain/agent/preload.ts';
import type { License } from '../domain/license.ts';
import type { QueueName, LicenseOperationKind } from '../domain/outbox/operation.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Result } from '../domain/problem/problem.ts';

/** The time; tests use a fake clock. */
export interface Clock {
  /** Epoch ms; never goes back, even if the wall clock does. */
  now(): number;
  /** Monotonic ms, independent of changes of the wall clock; for waits and reconcile delays. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export interface Random {
  /** Bytes from a cryptographic source. */
  bytes(count: number): Uint8Array;
  /** A UUIDv7 (RFC 9562) of the instant, in epoch ms. */
  uuid(now: number): string;
  /** A number in [0, 1), for jitter. */
  fraction(): number;
}

/** SHA-256 as lower-case hexadecimal. Secrets that we check are stored only as digests. */
export type Digest = (secret: string) => string;

/** Compares two digests in constant time. */
export type SameDigest = (left: string, right: string) => boolean;

export type WriterContext = {
  /** `Clock.now` when the command was posted. */
  now: number;
  /** `Clock.monotonic` when the command was posted. */
  monotonic: number;
  random: Random;
  digest: Digest;
  /** Whether changes of licenses are added to their history (`history.keep`). */
  recordsHistory: boolean;
};

export type Context = WriterContext & {
  /** The caller (`Principal.credential`), or `latchkey` if this process acts by itself. */
  actor: string;
  /** Null if this process acts by itself. */
  requestId: string | null;
};

/**
 * `credential`: whose key it is. `fingerprint`: a digest of the request. `keyed`: an agent delivers an operation of its
 * outbox under its id, so that the response is kept for longer, and short.
 */
export type Idempotency = { credential: string; key: string; fingerprint: string; keyed?: Keyed };

/** `actor`: the caller (`Principal.credential`); null: this process itself. */
export type WriteOptions = {
  actor: string | null;
  requestId: string | null;
  idempotency: Idempotency | null;
};

/**
 * Why a write or a read (`unreadable`) failed. `full`, `unavailable` and `unreadable` can recover; `failed` and
 * `commit_failed` end the process. After `commit_failed` and `unknown` it is uncertain whether the write was done.
 */
export type StorageFault = 'full' | 'failed' | 'commit_failed' | 'unavailable' | 'unreadable' | 'unknown';

const faultMessages: Readonly<Record<StorageFault, string>> = {
  full: 'the storage is full',
  failed: 'the storage failed',
  commit_failed: 'the storage failed during a commit',
  unavailable: 'the storage cannot be reached',
  unreadable: 'the storage cannot be read',
  unknown: 'the storage did not confirm the write',
};

export class StorageError extends Error {
  readonly fault: StorageFault;
  constructor(fault: StorageFault, cause: unknown) {
    super(faultMessages[fault], { cause });
    this.name = 'StorageError';
    this.fault = fault;
  }
}

/** Why a start cannot use its database. `isConfigured`: the configuration is wrong, so another start does not help. */
export class EngineError extends Error {
  readonly isConfigured: boolean;

  constructor(message: string, { cause, isConfigured = false }: { cause?: unknown; isConfigured?: boolean }) {
    super(message, { cause });
    this.isConfigured = isConfigured;
  }
}

/** A coupon of the upstream's list that cannot be parsed; `id` and `code` are null if they cannot be parsed either. */
export type UnreadableCoupon = { id: number | null; code: string | null; fault: string };

/** `cursor`: from the page before; without it, `offset` counts. */
export type UpstreamPage = { limit: number; offset: number; cursor?: string | undefined };

export type CouponPage = { coupons: readonly Coupon[]; unreadable: readonly UnreadableCoupon[] };

/** What makes an upstream that is a Latchkey carry a change out once, however often the agent sends it. */
export type Keyed = {
  /** The id of the operation. */
  id: string;
  /** When the caller asked (epoch ms). */
  createdAt: number;
  /** The last epoch of the upstream that is known; null: none. */
  epoch: string | null;
  /** An earlier attempt may have been carried out. */
  isRepeat: boolean;
  /** For an enable: the revision at which its caller saw the license. */
  seenRevision: number | null;
};

/** `requestId` is sent to the upstream, too. `keyed`: absent for an upstream that is no Latchkey. */
export type ChangeRequest = { requestId: string | null; keyed?: Keyed };

export type UpstreamChange = ChangeRequest & {
  productId: string;
  licenseKey: string;
  kind: LicenseOperationKind;
  /** How many uses a `usage` counts; absent: 1. Only a store with an API of its own gets more. */
  amount?: number;
};

export type UpstreamRedemption = ChangeRequest & {
  order: string;
  cart: Cart;
  /** When the agent answered its caller (epoch ms); null: the caller waits. */
  answeredAt: number | null;
};

/** A redemption as the upstream has stored it. */
export type StoredRedemption = { quote: Quote; isOverLimit: boolean };

/**
 * A server that speaks the specification. Each call is one request: no retry, no redirect.
 * No call rejects; failures are outcomes.
 */
export interface Upstream {
  verify(productId: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<License>>;
  change(change: UpstreamChange, signal: AbortSignal): Promise<Outcome<License>>;
  createCoupon(terms: CouponTerms, about: ChangeRequest, signal: AbortSignal): Promise<Outcome<Coupon>>;
  /** Redeems a coupon at a Latchkey. The order is the natural key. */
  redeem(redemption: UpstreamRedemption, signal: AbortSignal): Promise<Outcome<StoredRedemption>>;
  voidRedemption(redemption: ChangeRequest & { order: string }, signal: AbortSignal): Promise<Outcome<null>>;
  listCoupons(page: UpstreamPage, signal: AbortSignal): Promise<Outcome<CouponPage>>;
  getCoupon(id: number, signal: AbortSignal): Promise<Outcome<Coupon>>;
}

/** A request that only a Latchkey answers, with the credential of a product. Its body is JSON. */
export type LatchkeyRequest<Value> = {
  path: string;
  body: string;
  /** Texts of the request that no detail of an error may repeat. */
  hidden: readonly string[];
  /** For how long the upstream may wait before it answers. */
  waitMs: number;
  read: (body: Readonly<Record<string, unknown>>) => { value: Value } | { fault: string };
};

/** What an upstream that is a Latchkey offers besides. Each call is one request; failures are outcomes. */
export interface SyncUpstream {
  /** `GET /sync/v1`: whether the upstream answers. */
  probe(productId: string, signal: AbortSignal): Promise<Outcome<null>>;
  /** For the requests of features. */
  ask<Value>(
    productId: string,
    request: LatchkeyRequest<Value>,
    signal: AbortSignal,
  ): Promise<Outcome<Value>>;
}

/** Who sends a request. */
export type Caller = {
  /** Look-ups of different credentials take turns (`Principal.credential`). */
  credential: string;
  /** The name of the connection. Look-ups of a connection that finds nothing come last. */
  connection: string;
};

export type Requester = Caller & {
  /** Whether the look-up counts against `limits.misses`, because the key is unknown here. */
  isCounted: boolean;
};

/** A license that the upstream just sent and the full disk could not take. */
export type UnstoredLicense = { license: License; productId: string; confirmedAt: number };

export type LookupResult =
  /** Without `unstored`, the license is in the store. */
  | { found: 'known'; unstored?: UnstoredLicense }
  /** The upstream knows the key under none of the products. */
  | { found: 'missing' }
  | { found: 'unreachable'; detail: string }
  /** The upstream was not asked: too many look-ups of unknown keys wait, or this one has waited too long. */
  | { found: 'limited'; waitMs: number };

/** Reads license keys from the upstream. Responses are stored before the promises resolve. */
export interface LicenseFetch {
  /**
   * Asks for a key under each product in turn. A look-up that counts waits for its turn first. Concurrent callers share
   * one request, which counts for the first caller. `requester`: null if this process itself asks.
   */
  fetchForCaller(
    productIds: readonly string[],
    licenseKey: string,
    signal: AbortSignal,
    requester: Requester | null,
  ): Promise<LookupResult>;
  /** Lets the next look-up of a key ask the upstream. Returns the products under which it was 404 before. */
  forgetMissing(productIds: readonly string[], licenseKey: string): readonly string[];
  /** Queues a background read of a known key. */
  refresh(productId: string, licenseKey: string): void;
}

/** `confirmedAt`: the date of the upstream's response (epoch ms). */
export type CouponLookup<Value> =
  | { found: 'known'; value: Value; confirmedAt: number }
  | Exclude<LookupResult, { found: 'known' | 'limited' }>;

/** Reads and creates coupons at the upstream. Responses are mirrored before the promises resolve, unless the disk is full. */
export interface CouponFetch {
  list(signal: AbortSignal): Promise<CouponLookup<readonly Coupon[]>>;
  get(id: number, signal: AbortSignal): Promise<CouponLookup<Coupon>>;
  /** Waits until a creation may be sent. */
  admit(signal: AbortSignal): Promise<'admitted' | 'away' | 'unauthorized'>;
  /** Returns an admission that was not used. */
  giveBack(): void;
  /** Whether the upstream refuses the API key. */
  isRefused(): boolean;
  /** Whether changes of coupons may be sent now, as far as is known. */
  isReachable(): boolean;
  /** Sends a creation that is committed as in flight, once. The outcome is stored before the promise resolves. */
  create(operationId: string, caller: { idempotency: Idempotency | null }): Promise<Outcome<Coupon>>;
  /** Queues a background read of the whole list. */
  refresh(): void;
  /** The coupons of the last list since the start that cannot be read. */
  unreadable(): readonly UnreadableCoupon[];
}

/** Deliveries to the upstream that callers wait for. */
export interface Deliveries {
  /**
   * Resolves when the operation is finished or waits for a person, or after `waitMs`. With `untilFailure`, also when an
   * attempt has failed or the upstream is down.
   */
  waitFor(
    operationId: string,
    wait: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void>;
  /** Call it when the outbox has a new operation, in this queue if known. */
  wake(queue?: { subject: string; queue: QueueName }): void;
}

/** Controls sync; each call of a person is audited. */
export interface SyncControl {
  /** Ends every wait except reconcile delays, the upstream's `Retry-After` and the rate limit. */
  now(writeOptions: WriteOptions): Promise<Result<unknown>>;
  /** Sends nothing to the upstream until `resume`, even after restarts. */
  pause(writeOptions: WriteOptions): Promise<Result<unknown>>;
  /** Ends a pause, and retries rejected credentials. */
  resume(writeOptions: WriteOptions): Promise<Result<unknown>>;
  /** Call it when the outbox may have something to do. */
  wake(): void;
  /** Queues license keys to be fetched, so that they can be answered offline. */
  preload(
    command: { licenseKeys: readonly string[]; productKey: string | null },
    writeOptions: WriteOptions,
  ): Promise<Result<{ queued: number }>>;
  /**
   * Reads a page of the license keys of a product at the store. `after`: `next` of the page before; null: the first. Absent:
   * the upstream does not list its license keys.
   */
  listKeys?(productId: string, after: string | null, signal: AbortSignal): Promise<Result<KeyPage>>;
}

/** Logs structured lines; secrets and whole license keys are never logged. */
export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** What came back from the issuer of leases for one request. */
export type IssuerReply =
  | { kind: 'answered'; status: number; body: unknown; retryAfterS: number | null }
  | { kind: 'failed'; detail: string; error?: Error };
