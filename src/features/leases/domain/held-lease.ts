import { dayMs, hourMs } from '../../../domain/time.ts';
import {
  type HeldDocument,
  type HeldLease,
  type KnownSequence,
  type LeaseAct,
  type NoticeState,
  type UseTotals,
  maxGrowth,
  usesAfter,
} from './lease.ts';
import type { License } from '../../../domain/license.ts';
import { asAnswered, statusEndsAt } from '../../../domain/terms.ts';

/* The rules of a holder: what it answers from a lease, which request follows, and what an answer changes. */

/** What a holder can say about a license key. `state`: of the last notice. */
export type HeldVerdict =
  | { verdict: 'answer'; license: License; freshness: 'fresh' | 'grace'; until: number }
  /** The lease has expired, or the stored document is not proven. `ended`: the license, if it has ended as well. */
  | { verdict: 'expired'; ended: License | null }
  /** There is no lease, and no notice either. */
  | { verdict: 'none' }
  | { verdict: 'over'; state: Exclude<NoticeState, 'disabled'> };

/** `now`: epoch ms. `until`: until when the answer stays the same if nothing is written. */
export function heldVerdict(held: HeldLease, now: number): HeldVerdict {
  const { document } = held;
  // The user has given the seat back.
  if (document === null || held.wanted === 'ended') return { verdict: 'none' };
  if (document.kind === 'notice') {
    const { state } = document;
    if (state !== 'disabled') return { verdict: 'over', state };
    const license = asAnswered(licenseOf(held), now);
    const isExpired = document.expiredAt !== undefined;
    const answered: License = isExpired ? { ...license, status: 'expired' } : license;
    return { verdict: 'answer', license: answered, freshness: 'fresh', until: Infinity };
  }
  if (document.kind === 'unproven') return { verdict: 'expired', ended: null };
  const { refreshAt, expiresAt } = document;
  const license = licenseOf(held);
  if (now >= expiresAt) {
    const isOver = now >= (license.expiresAt ?? Infinity);
    return { verdict: 'expired', ended: isOver ? { ...license, enabled: false, status: 'expired' } : null };
  }
  // A lease that is longer than its license has the grace of the license.
  const answered = asAnswered(license, now, expiresAt);
  const freshness = now < refreshAt ? 'fresh' : 'grace';
  const ends = freshness === 'fresh' ? Math.min(refreshAt, expiresAt) - 1 : expiresAt - 1;
  return { verdict: 'answer', license: answered, freshness, until: Math.min(ends, statusEndsAt(answered)) };
}

/** The license with the uses that the issuer has not confirmed. */
export function licenseOf(held: HeldLease): License {
  const { document, productKey, licenseKey, createdAt } = held;
  const last = document?.license ?? {
    licenseKey,
    productKey,
    buyerEmail: '',
    uses: 0,
    enabled: false,
    createdAt,
  };
  const pending = growth(held.confirmedUses, held.uses);
  const expiredAt = document?.kind === 'notice' ? document.expiredAt : undefined;
  return {
    ...last,
    enabled: document?.kind === 'lease',
    uses: usesAfter(last.uses, pending),
    ...(expiredAt !== undefined && { expiresAt: expiredAt }),
  };
}

/** How many uses and undone uses the issuer has not confirmed. */
export function pendingUses({ uses, confirmedUses }: Pick<HeldLease, 'uses' | 'confirmedUses'>): number {
  const { recorded, returned } = growth(confirmedUses, uses);
  return recorded + returned;
}

/** How many of them the unanswered request reports. */
export function requestedUses({ request, confirmedUses }: HeldLease): number {
  return request === null ? 0 : pendingUses({ uses: request.uses, confirmedUses });
}

/** The totals of the next request: all, or as many as one request may add. */
export function totalsToSend({ uses, confirmedUses }: HeldLease): UseTotals {
  const { recorded, returned } = growth(confirmedUses, uses);
  const sentRecorded = Math.min(recorded, maxGrowth);
  const sentReturned = Math.min(returned, maxGrowth - sentRecorded);
  return {
    recorded: confirmedUses.recorded + sentRecorded,
    returned: confirmedUses.returned + sentReturned,
  };
}

/** When the next request is due by itself (epoch ms); Infinity: not before something happens. */
export function dueAt(held: HeldLease): number {
  const { document, request, wanted } = held;
  if (request !== null && request.act !== 'renew') return 0;
  if (wanted === 'ended') return mayHaveSeat(held) || pendingUses(held) > 0 ? 0 : Infinity;
  if (document?.kind === 'unproven') return 0;
  if (held.activationId !== null && pendingUses(held) > 0) return 0;
  return document?.kind === 'lease' ? document.refreshAt : Infinity;
}

/**
 * Whether the issuer may count a seat for this device. That of a disabled license stays taken, and an unproven document says
 * nothing.
 */
export function mayHaveSeat({ document }: HeldLease): boolean {
  if (document === null) return false;
  return document.kind !== 'notice' || document.state === 'disabled';
}

/** The request that follows by itself once it is due; null: none. */
export function nextAct(held: HeldLease): LeaseAct | null {
  const { document, wanted } = held;
  if (wanted === 'ended') return mayHaveSeat(held) || pendingUses(held) > 0 ? 'end' : null;
  return document === null ? null : 'renew';
}

/** The request that may bring a lease; null: there is a valid one. `now`: epoch ms. */
export function actForLease(held: HeldLease, now: number): LeaseAct | null {
  const found = heldVerdict(held, now);
  if (found.verdict === 'answer' && held.document?.kind === 'lease') return null;
  return found.verdict === 'expired' ? 'renew' : 'take';
}

/** A signed document that the issuer has just sent. */
export type ReceivedDocument = {
  document: Exclude<HeldDocument, { kind: 'unproven' }>;
  activationId: string;
  rev: number;
};

/** The row after an answer. `answered`: the text of the answered request; null: no request that is stored here. */
export function afterAnswer(
  held: HeldLease,
  answered: string | null,
  { document, activationId, rev }: ReceivedDocument,
): HeldLease {
  const isAnswered = answered !== null && held.request?.text === answered;
  const confirmed = isAnswered ? afterRequest(held) : held;
  if (rev <= held.rev) return { ...confirmed, activationId: held.activationId ?? activationId };
  const license = document.license ?? confirmed.document?.license ?? null;
  const kept: HeldDocument = document.kind === 'lease' ? document : { ...document, license };
  return { ...confirmed, document: kept, activationId, rev };
}

/**
 * The row after a refusal of its request. `isRecorded`: the issuer has recorded the request; otherwise, the next request has
 * the same number. With the refusal, the issuer counts the uses of a device that had a lease. The uses of another device stay
 * pending.
 */
export function afterRefusal(held: HeldLease, isRecorded: boolean): HeldLease {
  if (!isRecorded) return { ...held, seq: held.seq - 1, request: null };
  return held.activationId === null ? { ...held, request: null } : afterRequest(held);
}

/** The row after the issuer has recorded its request. */
function afterRequest(held: HeldLease): HeldLease {
  const { request, document, confirmedUses } = held;
  if (request === null) return held;
  const added = growth(confirmedUses, request.uses);
  return {
    ...held,
    request: null,
    confirmedUses: request.uses,
    document:
      document === null || document.license === null
        ? document
        : { ...document, license: { ...document.license, uses: usesAfter(document.license.uses, added) } },
  };
}

/**
 * The totals after the issuer has answered `out_of_sequence` with its own totals. What it has not confirmed here is added to
 * its totals. A restored issuer has lower totals than it had confirmed, and gets the difference again. Another issuer does
 * not.
 */
export function continuedTotals(
  { uses, confirmedUses }: HeldLease,
  issuer: Pick<KnownSequence, 'uses' | 'isRestored'>,
): Pick<HeldLease, 'uses' | 'confirmedUses'> {
  const pending = growth(confirmedUses, uses);
  const base = issuer.isRestored
    ? {
        recorded: Math.max(issuer.uses.recorded, confirmedUses.recorded),
        returned: Math.max(issuer.uses.returned, confirmedUses.returned),
      }
    : issuer.uses;
  return {
    uses: { recorded: base.recorded + pending.recorded, returned: base.returned + pending.returned },
    confirmedUses: issuer.uses,
  };
}

function growth(from: UseTotals, to: UseTotals): UseTotals {
  return {
    recorded: Math.max(0, to.recorded - from.recorded),
    returned: Math.max(0, to.returned - from.returned),
  };
}

const warningDays = [1, 7, 14] as const;
/** A renewal may be late by this many ms without a warning. */
const lateMs = hourMs;

/**
 * For how many days or fewer a lease that could not be renewed is still valid: 14, 7 or 1; null: there is nothing to warn
 * of. A lease that is shorter than the warning time is not warned of.
 */
export function warningOf({ document, wanted }: HeldLease, now: number): number | null {
  if (document?.kind !== 'lease' || wanted === 'ended') return null;
  const { issuedAt, refreshAt, expiresAt } = document;
  if (now < refreshAt + lateMs || now >= expiresAt) return null;
  const days = warningDays.find((each) => expiresAt - now <= each * dayMs);
  return days !== undefined && days * dayMs < expiresAt - issuedAt ? days : null;
}

/** The state of a lease in one word, for people. `waiting`: a request is unanswered; `none`: the issuer has refused. */
export function heldState(held: HeldLease, now: number): HeldState {
  if (held.wanted === 'ended') return mayHaveSeat(held) ? 'waiting' : 'ended';
  const found = heldVerdict(held, now);
  switch (found.verdict) {
    case 'answer':
      if (found.license.enabled) return 'active';
      return found.license.status === 'expired' ? 'expired' : 'disabled';
    case 'expired':
      return held.document?.kind === 'unproven' ? 'waiting' : 'expired';
    case 'over':
      return found.state;
    case 'none':
      return held.request === null ? 'none' : 'waiting';
    default:
      return found satisfies never;
  }
}

export type HeldState = NoticeState | 'active' | 'expired' | 'waiting' | 'none';
