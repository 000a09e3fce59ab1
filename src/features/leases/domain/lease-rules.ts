import { maxGrowth, type Activation, type SignedRequest, type UseTotals } from './lease.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import { hasSeat } from './seat.ts';
import { decideSequence } from '../../../domain/sequence.ts';

/* Rules of the issuer about one request of a device. Times are epoch ms. */

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

/** The end of a lease. `until`: asked for by a person. `knownUntil`: the issuer cannot be sure of the license later. */
export type LeaseLimits = { keyNotAfter: number; knownUntil: number; until: number | null };

/** The dates of a lease that is signed now, in whole seconds; null: it would have expired already. */
export function leaseDates(
  { termMs, refreshMs }: Pick<LeaseTerms, 'termMs' | 'refreshMs'>,
  { keyNotAfter, knownUntil, until }: LeaseLimits,
  now: number,
): { expiresAt: number; refreshAt: number } | null {
  const expiresAt = wholeSecond(Math.min(until ?? now + termMs, keyNotAfter, knownUntil));
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
 * is disabled.
 */
export function waitsUntil(
  activation: Activation,
  { request, digest }: SignedRequest,
  { isEnabled, now }: { isEnabled: boolean; now: number },
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
  if (!isEnabled) return answer.kind === 'notice' && answer.notice.state === 'disabled' ? Infinity : null;
  if (state !== 'active' || !hasSeat(activation, now) || answer.kind !== 'lease') return null;
  return answer.lease.refreshAt > now ? answer.lease.refreshAt : null;
}
