import { dayMs } from '../../../domain/time.ts';
import type { License } from '../../../domain/license.ts';
import type { Problem } from '../../../domain/problem/problem.ts';

/*
 * Leases: signed statements that a license is valid on a device until a date. The issuer signs leases and notices with a
 * signing key; a device signs requests and proofs with its own key. `features/leases/wire/lease.ts` has the documents. Times
 * are epoch ms; documents have whole seconds.
 */

/** People are warned when the last signing key ends within this time. */
export const keyEndsSoonMs: number = 60 * dayMs;

/** How often seats of a license can be freed at once within `movesWithinMs`. */
export const maxMoves = 3;
export const movesWithinMs: number = 30 * dayMs;

/** The most by which the totals of uses may grow in one request. */
export const maxGrowth = 10_000;

/** How many devices without a seat are remembered for each license. */
export const maxEndedActivations = 100;

/** The longest name of a device, in characters. */
export const maxDeviceNameLength = 100;

/** Running totals of the uses that a device has recorded and taken back since its first request. */
export type UseTotals = { recorded: number; returned: number };

export const noUses: Readonly<UseTotals> = { recorded: 0, returned: 0 };

/** The count of a license after the growth: the recorded uses come first, and the count stops at 0. */
export function usesAfter(uses: number, { recorded, returned }: UseTotals): number {
  return Math.max(0, uses + recorded - returned);
}

/** What a request asks for. `take`: a seat; `renew`: another lease; `end`: give the seat back. */
export type LeaseAct = 'take' | 'renew' | 'end';

/** A request that was signed by a device. */
export type LeaseRequest = {
  act: LeaseAct;
  productKey: string;
  /** As typed in by the user. */
  licenseKey: string;
  seq: number;
  challenge: string | null;
  /** With a challenge: the activation of the last lease or notice of this device; null: none. */
  activationId: string | null;
  /** Goes into the lease, as a proof that the lease is newer than the nonce. */
  nonce: string | null;
  deviceName: string | null;
  /** The activation whose seat this device takes over. */
  replaces: string | null;
  uses: UseTotals;
};

/** The signature of a request was valid. `device`: the thumbprint (RFC 7638) of the key of the device. */
export type SignedRequest = {
  request: LeaseRequest;
  device: string;
  /** SHA-256 of the signed part, in lower-case hexadecimal. */
  digest: string;
};

/** The seats of a license at the time of a lease. */
export type Seats = { limit: number; taken: number };

/** The content of a lease. */
export type Lease = {
  activationId: string;
  productKey: string;
  license: License;
  expiresAt: number;
  issuedAt: number;
  /** When the holder renews. */
  refreshAt: number;
  /** A document with a higher number replaces earlier documents of the activation. */
  rev: number;
  /** Null: any number of devices. */
  seats: Seats | null;
  /** The thumbprint (RFC 7638) of the key of the device. */
  device: string;
  nonce: string | null;
};

/** Why there is no lease. */
export type NoticeState = 'disabled' | 'ended' | 'blocked' | 'replaced';

/** The content of a notice: the answer instead of a lease. */
export type Notice = {
  activationId: string;
  licenseKey: string;
  state: NoticeState;
  rev: number;
  issuedAt: number;
  /** The thumbprint (RFC 7638) of the key of the device. */
  device: string;
  /** With `disabled`: the license ended then, and would be valid otherwise. */
  expiredAt?: number;
};

/**
 * What the issuer knows of the requests of a device, for a request that does not follow the last one. `isRestored`: the store
 * of the issuer was restored, so uses that the issuer had confirmed may be missing.
 */
export type KnownSequence = NonNullable<Problem['known']>;

/** What the issuer answers to a request, before it is signed. */
export type LeaseAnswer =
  | { kind: 'lease'; lease: Lease }
  | { kind: 'notice'; notice: Notice }
  | { kind: 'refused'; problem: Problem };

/**
 * One device that has asked for a seat of a license, at the issuer. There is one row for each pair of a license and a
 * device key.
 */
export type Activation = {
  /** `sub` of its leases. */
  activationId: string;
  /** The license key as stored here. */
  licenseKey: string;
  productKey: string;
  /** The thumbprint (RFC 7638) of the key of the device. */
  device: string;
  deviceName: string | null;
  /** `active`: the device may renew. The others are the states of notices. */
  state: 'active' | 'ended' | 'replaced' | 'blocked';
  /** The last request that was carried out, and its answer. */
  seq: number;
  digest: string;
  answer: LeaseAnswer;
  /** The `rev` of the last document. */
  rev: number;
  /** When the last lease expires; 0: there was no lease. */
  expiresAt: number;
  /** Until when the seat is taken; in the past: it is free. */
  seatUntil: number;
  uses: UseTotals;
  createdAt: number;
  /** When the device last got a lease. */
  renewedAt: number;
  /** When its seat was freed at once, within the last `movesWithinMs`; oldest first. */
  movedAt: readonly number[];
  /** When its last challenges were answered; oldest first, at most three. */
  challengedAt: readonly number[];
  /** Since when two copies of the device's state seem to be in use; null: never. */
  copiedAt: number | null;
};

/**
 * A signed document of the issuer at a holder, and what of its content the holder needs. `license`: of the lease, or of the
 * last lease before the notice; null: there was none.
 */
export type HeldDocument = { text: string; issuedAt: number } & (
  | { kind: 'lease'; license: License; refreshAt: number; expiresAt: number }
  | { kind: 'notice'; license: License | null; state: NoticeState; expiredAt?: number }
  /** The stored text proves nothing, because of the fault (one sentence). The issuer is asked again. */
  | { kind: 'unproven'; license: null; fault: string }
);

/** A lease and its requests at the holder, one row for each license key. */
export type HeldLease = {
  licenseKey: string;
  productKey: string;
  /** Null until the issuer has answered. */
  activationId: string | null;
  /** The last signed document of the issuer; null: none yet. */
  document: HeldDocument | null;
  rev: number;
  /** The number of the last request that was signed. */
  seq: number;
  /** The signed request that is repeated until it is answered; null: none. */
  request: { text: string; act: LeaseAct; uses: UseTotals } | null;
  /** All uses that were counted here. */
  uses: UseTotals;
  /** The uses that the issuer has confirmed. */
  confirmedUses: UseTotals;
  /** `ended`: the user has given the seat back, and it is not taken again by itself. */
  wanted: 'active' | 'ended';
  createdAt: number;
};
