import {
  maxGrowth,
  type Activation,
  type SignedRequest,
  type UseTotals,
  maxMoves,
  movesWithinMs,
  type NoticeState,
} from './lease.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import type { NewEvent } from '../../../domain/event.ts';
import type { License } from '../../../domain/license.ts';
import type { LicenseEnd } from '../../../domain/terms.ts';

/* Rules of the issuer about the requests of a device, and about the seats of a license. Times are epoch ms. */

/** By how much the totals have grown; null if one of them went back, or has grown by more than `maxGrowth`. */
export function growthOf(before: UseTotals, after: UseTotals): UseTotals | null {
  const growth = { recorded: after.recorded - before.recorded, returned: after.returned - before.returned };
  const isValid = [growth.recorded, growth.returned].every((by) => by >= 0 && by <= maxGrowth);
  return isValid ? growth : null;
}

/** The `rev` of the next document of an activation. The clock makes it higher than those before a restore of the store. */
export function nextRev({ rev }: Pick<Activation, 'rev'>, now: number): number {
  return Math.max(rev + 1, now);
}

/** The lease settings for a license: its own, and those of its product for what it does not say. */
export function leaseTermsFor({ terms }: Pick<License, 'terms'>, product: LeaseTerms): LeaseTerms {
  return {
    ...product,
    seats: terms?.seats ?? product.seats,
    holdMs: terms?.leaseHoldMs ?? product.holdMs,
    termMs: terms?.leaseTermMs ?? product.termMs,
    refreshMs: terms?.leaseRefreshMs ?? product.refreshMs,
  };
}

/** Until when an authority answers a license as valid; Infinity: it never ends. */
export function endOf({ expiresAt, graceUntil }: LicenseEnd): number {
  return graceUntil ?? expiresAt ?? Infinity;
}

/** Whether no lease can be valid any more. `endsAt`: the end of the license with the grace that applies. */
export function hasEnded(endsAt: number, now: number): boolean {
  return now >= wholeSecond(endsAt);
}

/** The terms of a license that its leases contain, in this order: what the seller has noted is not for devices. */
export function leasedTerms({
  expiresAt = null,
  usesLimit = null,
  terms,
}: Pick<License, 'expiresAt' | 'usesLimit' | 'terms'>): Pick<License, 'expiresAt' | 'usesLimit' | 'terms'> {
  const { entitlements = [] } = terms ?? {};
  return {
    ...(expiresAt !== null && { expiresAt }),
    ...(usesLimit !== null && { usesLimit }),
    ...(entitlements.length > 0 && { terms: { entitlements } }),
  };
}

/**
 * The end of a lease. `until`: asked for by a person. `knownUntil`: the issuer cannot be sure of the license later.
 * `endsAt`: the license ends.
 */
export type LeaseLimits = { keyNotAfter: number; knownUntil: number; endsAt: number; until: number | null };

/** The dates of a lease that is signed now, in whole seconds; null: it would have expired already. */
export function leaseDates(
  { termMs, refreshMs }: Pick<LeaseTerms, 'termMs' | 'refreshMs'>,
  { keyNotAfter, knownUntil, endsAt, until }: LeaseLimits,
  now: number,
): { expiresAt: number; refreshAt: number } | null {
  const expiresAt = wholeSecond(Math.min(until ?? now + termMs, keyNotAfter, knownUntil, endsAt));
  if (expiresAt <= now) return null;
  return { expiresAt, refreshAt: wholeSecond(Math.min(now + refreshMs, (now + expiresAt) / 2)) };
}

/** Documents have whole seconds: a lease ends at the beginning of one. */
export function wholeSecond(epochMs: number): number {
  return Math.floor(epochMs / 1000) * 1000;
}

/**
 * Until when a request may wait for a change, because its answer would be what the device has already; null: answer it
 * now. It is the next request of an active device with a lease that is not due, or of a device that knows that the license
 * cannot be used.
 */
export function waitsUntil(
  activation: Activation,
  { request, digest }: SignedRequest,
  { license, endsAt, now }: { license: License; endsAt: number; now: number },
): number | null {
  const { act, nonce, uses, challenge } = request;
  const { answer, state } = activation;
  const asksForMore =
    act !== 'renew' ||
    nonce !== null ||
    challenge !== null ||
    uses.recorded !== activation.uses.recorded ||
    uses.returned !== activation.uses.returned;
  if (asksForMore || decideSequence(activation, { ...request, digest }, '') !== 'next') return null;
  if (!license.enabled || hasEnded(endsAt, now))
    return answer.kind === 'notice' && answer.notice.state === 'disabled' ? Infinity : null;
  if (state !== 'active' || !hasSeat(activation, now) || answer.kind !== 'lease') return null;
  // A customer who has bought an entitlement or a renewal does not wait for the next lease.
  const isSame = JSON.stringify(leasedTerms(answer.lease.license)) === JSON.stringify(leasedTerms(license));
  return isSame && answer.lease.refreshAt > now ? answer.lease.refreshAt : null;
}

/*
 * Order and repetition of the requests of a device, which numbers and repeats them until they are answered. The issuer keeps
 * one row: the last number, the digest of that request, and its answer.
 */

/** The last request that was carried out; number 0: none yet. */
export type LastRequest = { seq: number; digest: string };

/** `challenge`: the challenge of the last refusal `out_of_sequence`; null: none. */
export type NumberedRequest = { seq: number; digest: string; challenge: string | null };

/**
 * - `next`: carry the request out.
 * - `continued`: carry it out as well; it follows a challenge, so the sender's history was interrupted.
 * - `repeated`: send the stored answer again.
 * - `reused`: change nothing; the last number belongs to another request.
 * - `out_of_sequence`: change nothing, and send the last number and a challenge.
 */
export type SequenceDecision = 'next' | 'continued' | 'repeated' | 'reused' | 'out_of_sequence';

/** `challenge`: the challenge that a request after `last` can answer. */
export function decideSequence(
  last: LastRequest,
  request: NumberedRequest,
  challenge: string,
): SequenceDecision {
  if (request.seq === last.seq) return request.digest === last.digest ? 'repeated' : 'reused';
  if (request.seq !== last.seq + 1) return 'out_of_sequence';
  if (request.challenge === null) return 'next';
  return request.challenge === challenge ? 'continued' : 'out_of_sequence';
}

/*
 * Seats of a license. The number of unexpired leases is at most the number of seats plus the moves, because each move
 * frees the seat of one device that could have kept its lease. Times are epoch ms.
 */

export function hasSeat({ seatUntil }: Pick<Activation, 'seatUntil'>, now: number): boolean {
  return seatUntil > now;
}

/**
 * Frees the seat of an activation. `moves`: how many seats of the license were freed at once within `movesWithinMs`.
 *
 * - The last lease of the device has expired: the seat is free at once, and this is no move.
 * - A move is left: the seat is free at once.
 * - No move is left: the seat is free when the last lease of the device expires.
 */
export function freeSeat(activation: Activation, { moves, now }: { moves: number; now: number }): Activation {
  const { seatUntil, expiresAt, movedAt } = activation;
  if (!hasSeat(activation, now)) return activation;
  if (expiresAt <= now) return { ...activation, seatUntil: now };
  if (moves >= maxMoves) return { ...activation, seatUntil: Math.min(seatUntil, expiresAt) };
  const recent = movedAt.filter((at) => at > now - movesWithinMs);
  return { ...activation, seatUntil: now, movedAt: [...recent, now] };
}

/** Ends an active activation. Another state stays: a blocked device is still blocked after `end`. */
export function endAs(activation: Activation, state: Exclude<NoticeState, 'disabled'>): Activation {
  return activation.state === 'active' || state === 'blocked' ? { ...activation, state } : activation;
}

/**
 * Whether the device has renewed its lease so recently that another device must not take over its seat: within
 * `refreshMs`, and at most within the first half of a short lease.
 */
export function isInUse(
  activation: Activation,
  { refreshMs, now }: { refreshMs: number; now: number },
): boolean {
  return activation.state === 'active' && now < inUseUntil(activation, refreshMs);
}

/** From when another device may take over the seat (epoch ms), unless the lease is renewed before. */
export function inUseUntil(
  { renewedAt, expiresAt }: Pick<Activation, 'renewedAt' | 'expiresAt'>,
  refreshMs: number,
): number {
  return renewedAt + Math.min(refreshMs, (expiresAt - renewedAt) / 2);
}

/** So many answered challenges within one lease term show that two copies of a device's state are in use. */
const challengesOfCopies = 3;

/**
 * Notes that a challenge was answered. One interruption is a lost or restored state; several within one lease term are
 * two copies that alternate.
 */
export function noteChallenge(
  activation: Activation,
  { termMs, now }: { termMs: number; now: number },
): Activation {
  const challengedAt = [...activation.challengedAt, now].slice(-challengesOfCopies);
  const [first = now] = challengedAt;
  const isCopied = challengedAt.length === challengesOfCopies && now - first <= termMs;
  return { ...activation, challengedAt, copiedAt: activation.copiedAt ?? (isCopied ? now : null) };
}

/** The event when an activation changes its state; null: there is none. `before`: null if it is new. */
export function seatEvent(activationId: string, before: string | null, after: string): NewEvent | null {
  if (before !== 'active' && after === 'active') return { type: 'seat.taken', subject: activationId };
  if (before === 'active' && after !== 'active') return { type: 'seat.ended', subject: activationId };
  return null;
}
