import type { Coupon, CouponTerms } from '../domain/checkout/coupon.ts';
import type { License } from '../domain/license.ts';
import type { QueueName, LicenseOperationKind } from '../domain/outbox/operation.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Result } from '../domain/problem/problem.ts';

/** Time as the daemon sees it; a test turns it by hand. */
export interface Clock {
  /** Epoch ms; follows the wall clock forwards, never backwards. */
  now(): number;
  /** Epoch ms that only pass: never moved by the wall clock. Waits and reconcile delays are measured by it. */
  elapsed(): number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export interface Random {
  /** Bytes from a cryptographic source. */
  bytes(count: number): Uint8Array;
  /** A UUIDv7 (RFC 9562) of the instant, in epoch ms. */
  uuid(now: number): string;
  /** A number in [0, 1), for jitter. */
  draw(): number;
}

/** SHA-256 as lower-case hexadecimal: secrets that we check are kept only so. */
export type Digest = (secret: string) => string;

/** Compares two digests in a time that tells nothing about either. */
export type SameDigest = (left: string, right: string) => boolean;

/** What the writer gives every write use case besides its transaction. */
export type WriterContext = {
  /** `Clock.now` when the command was posted. */
  now: number;
  /** `Clock.elapsed` when the command was posted. */
  elapsed: number;
  random: Random;
  digest: Digest;
  /** Whether changes of licenses are remembered (`history.keep`). */
  keepsHistory: boolean;
};

/** What a write use case has besides its transaction. */
export type Context = WriterContext & {
  /** Who asks (`Principal.credential`), or `latchkey` for what this process does by itself. */
  actor: string;
  /** The id of the request that asks; null for what this process does by itself. */
  requestId: string | null;
};

/** Under which idempotency key a write is asked for, by whom, and the digest of what is asked. */
export type Idempotency = { credential: string; key: string; fingerprint: string };

/** Who asks for a write (`Principal.credential`; null: this process itself), by which request, and under which idempotency key. */
export type WriteOptions = {
  actor: string | null;
  requestId: string | null;
  idempotency: Idempotency | null;
};

/**
 * Why the store did not take a write, or did not answer a read (`unreadable`): `full`, `unavailable` and `unreadable`
 * pass by themselves, `failed` and `commit_failed` end the process. `commit_failed`, `unknown`: nobody can tell whether
 * the write was done.
 */
export type StorageFault = 'full' | 'failed' | 'commit_failed' | 'unavailable' | 'unreadable' | 'unknown';

const faultMessages: Readonly<Record<StorageFault, string>> = {
  full: 'the storage is full',
  failed: 'the storage failed',
  commit_failed: 'the storage failed during a commit',
  unavailable: 'the storage cannot be reached',
  unreadable: 'the storage cannot be read',
  unknown: 'the storage did not tell whether it has written',
};

/** The store could not be read, or could not take a write, of which nothing was done unless its fault says otherwise. */
export class StorageError extends Error {
  readonly fault: StorageFault;
  constructor(fault: StorageFault, cause: unknown) {
    super(faultMessages[fault], { cause });
    this.name = 'StorageError';
    this.fault = fault;
  }
}

/** A coupon of the upstream's list that cannot be read; `id` and `code` are null where they cannot be either. */
export type UnreadableCoupon = { id: number | null; code: string | null; fault: string };

/** A stretch of the upstream's list: behind its first coupons, or by the cursor that the page before told. */
export type UpstreamPage = { limit: number; offset: number; cursor?: string | undefined };

/** A page of the upstream's coupons, and what of it cannot be read. */
export type CouponPage = { coupons: readonly Coupon[]; unreadable: readonly UnreadableCoupon[] };

/** A change of a license, and the id of the request that asked for it: it is sent along. */
export type UpstreamChange = {
  productKey: string;
  licenseKey: string;
  kind: LicenseOperationKind;
  requestId: string | null;
};

/**
 * A server that speaks the specification. Each call is one request: no retry, no redirect.
 * No call rejects: whatever happens is an outcome.
 */
export interface Upstream {
  verify(productKey: string, licenseKey: string, signal: AbortSignal): Promise<Outcome<License>>;
  change(change: UpstreamChange, signal: AbortSignal): Promise<Outcome<License>>;
  createCoupon(
    terms: CouponTerms,
    about: Pick<UpstreamChange, 'requestId'>,
    signal: AbortSignal,
  ): Promise<Outcome<Coupon>>;
  listCoupons(page: UpstreamPage, signal: AbortSignal): Promise<Outcome<CouponPage>>;
  getCoupon(id: number, signal: AbortSignal): Promise<Outcome<Coupon>>;
}

/** Who has a key looked up at the upstream. */
export type Requester = {
  /** Callers of different credentials take turns (`Principal.credential`). */
  credential: string;
  /** Whether the look-up counts against `limits.misses`: the key is not known here. */
  isCounted: boolean;
};

/** A license as the upstream has just said; `productKey`: the product it was asked under. */
export type UnstoredLicense = { license: License; productKey: string; confirmedAt: number };

/** What asking the upstream for a key that is not known well enough here came to. */
export type LookupResult =
  /** `unstored`: what the upstream said where the full disk has no room for it; absent: it is in the store. */
  | { found: 'known'; unstored?: UnstoredLicense }
  /** The upstream knows it under none of the products. */
  | { found: 'missing' }
  | { found: 'unreachable'; detail: string }
  /** The upstream was not asked: too many look-ups of unknown keys wait already, or this one has waited for too long. */
  | { found: 'limited'; waitMs: number };

/** Reads of license keys from the upstream; what they bring is in the store before they resolve. */
export interface LicenseFetch {
  /**
   * Asks for a key under each product in turn, after waiting for a turn where the look-up counts; concurrent callers
   * share one request, which is charged to the first of them. Null: this process itself asks.
   */
  fetchForCaller(
    productKeys: readonly string[],
    licenseKey: string,
    signal: AbortSignal,
    requester: Requester | null,
  ): Promise<LookupResult>;
  /** Queues a background read of a known key. */
  refresh(productKey: string, licenseKey: string): void;
}

/** What asking the upstream for coupons came to. `confirmedAt`: when the upstream said so (epoch ms). */
export type CouponLookup<Value> =
  | { found: 'known'; value: Value; confirmedAt: number }
  | Exclude<LookupResult, { found: 'known' | 'limited' }>;

/**
 * Coupons of the upstream; what its answers bring is in the mirror before the promises resolve, unless the disk is full.
 */
export interface CouponFetch {
  /** Brings the whole list. */
  list(signal: AbortSignal): Promise<CouponLookup<readonly Coupon[]>>;
  /** Brings one coupon. */
  get(id: number, signal: AbortSignal): Promise<CouponLookup<Coupon>>;
  /** Waits for the turn of a creation. */
  admit(signal: AbortSignal): Promise<'admitted' | 'away' | 'unauthorized'>;
  /** Gives back a turn that was not used. */
  giveBack(): void;
  /** Sends a creation that is committed as in flight: a single attempt, whose outcome is recorded when it resolves. */
  create(operationId: string, caller: { idempotency: Idempotency | null }): Promise<Outcome<Coupon>>;
  /** Queues a background read of the whole list. */
  refresh(): void;
}

/** The way up, as far as callers wait for it. */
export interface Deliveries {
  /**
   * Resolves when the operation is finished or waits for a person, or after `waitMs`. With `untilFailure`
   * also as soon as an attempt has failed, or when the upstream is known to be away.
   */
  waitFor(
    operationId: string,
    wait: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void>;
  /** There is something new in the outbox, in this queue where one is named. */
  wake(queue?: { subject: string; queue: QueueName }): void;
}

/** What a person does about the way up; each is an act on record, and its result is for one answer only. */
export interface SyncControl {
  /** Ends every wait except reconcile delays, the upstream's `Retry-After` and the rate limit. */
  now(writeOptions: WriteOptions): Promise<Result<unknown>>;
  /** Lets nothing go up, across restarts, until `resume`. */
  pause(writeOptions: WriteOptions): Promise<Result<unknown>>;
  /** Ends a pause, and asks again where a credential was refused. */
  resume(writeOptions: WriteOptions): Promise<Result<unknown>>;
  /** There may be something to do in the outbox. */
  wake(): void;
  /** Queues license keys to be fetched, so that they are answered offline. */
  preload(
    command: { licenseKeys: readonly string[]; productKey: string | null },
    writeOptions: WriteOptions,
  ): Promise<Result<{ queued: number }>>;
}

/** Structured log lines; never a secret, never a whole license key. */
export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}
