import {
  movesWithinMs,
  type Activation,
  type LeaseRequest,
  type NoticeState,
  type Seats,
} from '../domain/lease.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import type { ProblemCode } from '../../../domain/problem/problem-table.ts';
import type { Problem, SeatHolder } from '../../../domain/problem/problem.ts';
import { endAs, freeSeat, hasSeat, inUseUntil, isInUse } from '../domain/lease-rules.ts';
import { counted } from '../../../domain/text.ts';
import { formatDatetime } from '../../../domain/time.ts';
import type { AuthorityReader } from '../../../service/tables.ts';

export type Decision =
  | { kind: 'refused'; problem: Problem }
  | { kind: 'notice'; state: NoticeState; after: Activation }
  /** `replaced`: the activation whose seat is taken over; null: none. */
  | { kind: 'lease'; seats: Seats | null; replaced: Activation | null };

/** A request whose order and totals are right. */
export type ToDecide = {
  activations: AuthorityReader['activations'];
  request: LeaseRequest;
  /** The activation before the request. */
  before: Activation;
  isLicenseEnabled: boolean;
  terms: LeaseTerms;
  now: number;
};

/** Decides whether a device gets a lease, a notice or a refusal. */
export async function decide(asked: ToDecide): Promise<Decision> {
  const { request, before, now } = asked;
  const { state } = before;
  if (state === 'blocked' && request.act === 'take') {
    return refuse('activation_blocked', 'The vendor has blocked this device for the license.');
  }
  // Only a notice is signed, so only a notice ends the lease at the holder.
  if (state === 'blocked') return { kind: 'notice', state, after: before };
  if (request.act === 'end') {
    const after = endAs(freeSeat(before, { moves: await movesOf(asked), now }), 'ended');
    return { kind: 'notice', state: after.state === 'active' ? 'ended' : after.state, after };
  }
  if (!asked.isLicenseEnabled) return { kind: 'notice', state: 'disabled', after: before };
  if (request.act === 'renew' && state !== 'active') return { kind: 'notice', state, after: before };
  return await decideSeat(asked);
}

/** The device gets a lease if it has a seat, if one is free, or if it may take over the seat of another device. */
async function decideSeat(asked: ToDecide): Promise<Decision> {
  const { activations, before, terms, now } = asked;
  const { licenseKey } = before;
  const other = await deviceToReplace(asked);
  if (other !== null && isInUse(other, { refreshMs: terms.refreshMs, now })) {
    // Rounded up to the second: then the seat can be taken over.
    const from = formatDatetime(Math.ceil(inUseUntil(other, terms.refreshMs) / 1000) * 1000);
    const detail = `The other device has just renewed its lease: give its seat back there, or take it over from ${from} on, unless the lease is renewed again before.`;
    return refuse('no_seat_left', detail, { holders: [holderOf(other)] });
  }
  const replaced =
    other === null ? null : endAs(freeSeat(other, { moves: await movesOf(asked), now }), 'replaced');
  const { seats: limit } = terms;
  if (limit === null) return { kind: 'lease', seats: null, replaced };
  const isStillTaken = replaced !== null && hasSeat(replaced, now);
  const taken = await activations.seatsTaken(licenseKey, now, before.activationId);
  const others = replaced === null || isStillTaken ? taken : taken - 1;
  const keepsSeat = before.state === 'active' && hasSeat(before, now);
  if (keepsSeat || others < limit) return { kind: 'lease', seats: { limit, taken: others + 1 }, replaced };
  if (isStillTaken) {
    const detail = 'Seats of this license were freed at once three times within 30 days.';
    return refuse('no_move_left', detail, { freesAt: replaced.seatUntil });
  }
  const holders = await activations.list({ licenseKey, seatAt: now }, { limit: maxHolders, offset: 0 });
  const detail = `The license has ${counted(limit, 'seat')}, and no seat is free.`;
  return refuse('no_seat_left', detail, { holders: holders.map(holderOf) });
}

/** The most devices that a refusal lists. */
const maxHolders = 10;

/** The activation with a seat that the request names; null: none. An activation that has lost its seat need not be replaced. */
async function deviceToReplace({ activations, request, before, now }: ToDecide): Promise<Activation | null> {
  const { act, replaces } = request;
  if (act !== 'take' || replaces === null || replaces === before.activationId) return null;
  const other = await activations.get(replaces);
  return other?.licenseKey === before.licenseKey && hasSeat(other, now) ? other : null;
}

/** How many seats of the license were freed at once lately. */
async function movesOf({ activations, before, now }: ToDecide): Promise<number> {
  return await activations.movesSince(before.licenseKey, now - movesWithinMs + 1);
}

function refuse(
  code: ProblemCode,
  detail: string,
  more: Pick<Problem, 'holders' | 'freesAt'> = {},
): Extract<Decision, { kind: 'refused' }> {
  return { kind: 'refused', problem: { code, detail, ...more } };
}

function holderOf({ activationId, deviceName, renewedAt, seatUntil }: Activation): SeatHolder {
  return { activationId, deviceName, lastSeenAt: renewedAt, freesAt: seatUntil };
}
