import {
  maxEndedActivations,
  noUses,
  type Activation,
  type Lease,
  type LeaseAnswer,
  type LeaseRequest,
  type SignedRequest,
  type UseTotals,
} from '../domain/lease.ts';
import type { LeaseTerms } from '../../../domain/catalogue.ts';
import {
  growthOf,
  leaseDates,
  hasEnded,
  leasedTerms,
  nextRev,
  wholeSecond,
  type LeaseLimits,
  hasSeat,
  noteChallenge,
  decideSequence,
  seatEvent,
} from '../domain/lease-rules.ts';
import type { License } from '../../../domain/license.ts';
import {
  done,
  failWith,
  failWithFaults,
  type Problem,
  type Result,
} from '../../../domain/problem/problem.ts';
import { formatDatetime } from '../../../domain/time.ts';
import { note } from '../../../service/events.ts';
import { hasLostHistory } from '../../../service/lifecycle/run-count.ts';
import { logKey } from '../../../service/lifecycle/start.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction, Awaitable } from '../../../service/tables.ts';
import { decide } from './decision.ts';

/** A request of a device whose signature is valid, and what limits the answer. */
export type LeaseCommand = {
  signedRequest: SignedRequest;
  /** When the signing key ends (epoch ms): no lease is longer. */
  keyNotAfter: number;
  /** When the lease ends (epoch ms), as a person wants it; null: after the term of the product. */
  until: number | null;
  /** A person has the request answered, because it came as a file. The answer is audited. */
  isFile: boolean;
};

export type AnsweredRequest = {
  /** The answer, which is not signed yet. A refusal is a value, because its request is answered, too: its number counts. */
  answer: LeaseAnswer;
  activationId: string;
  /** The license key as stored. */
  licenseKey: string;
  /** The uses that were counted. */
  uses: UseTotals;
};

/** What the issuer knows of the license of a request. */
export type IssuedLicense = {
  license: License;
  terms: LeaseTerms;
  /** The activation of the device; null: it has none. */
  stored: Activation | null;
  /** Leases end at this instant (epoch ms) or earlier, because the license is not known for longer. */
  knownUntil: number;
  /** When the license ends, with the grace that applies (epoch ms); Infinity: never. */
  endsAt: number;
  /** The buyer was forgotten: the names of the devices are not stored. */
  isBuyerForgotten?: boolean;
  /** Counts uses, and returns the license with the new count. */
  countUses(growth: UseTotals, from: ReportingDevice): Awaitable<Result<License>>;
};

/** Who reports uses. `isContinued`: one of the two sides was restored, so the uses may have been counted before. */
export type ReportingDevice = Pick<Activation, 'activationId' | 'uses'> & { isContinued: boolean };

type Tables = Pick<AuthorityTransaction, 'activations' | 'settings' | 'events'>;

/** A request that is carried out. */
type Carrying = Pick<AuthorityTransaction, 'activations' | 'events'> & {
  issued: IssuedLicense;
  command: LeaseCommand;
  context: Context;
  /** The activation before the request. */
  before: Activation;
  isContinued: boolean;
  /** The device had a lease before, as far as this store can know. */
  hadLease: boolean;
};

/** Answers a request about a license that was found and locked. */
export async function answerRequest(
  tables: Tables,
  issued: IssuedLicense,
  command: LeaseCommand,
  context: Context,
): Promise<Result<AnsweredRequest>> {
  const { stored, terms, license } = issued;
  const { request, digest, device } = command.signedRequest;
  const last = stored ?? { seq: 0, digest: '', uses: noUses };
  const challenge = async (): Promise<string> =>
    // Computed from the last request, so that it is the same each time and an old request never has it.
    context.digest(JSON.stringify([await logKey(tables), 'challenge', license.licenseKey, device, last.seq]));
  const expected = request.challenge === null ? '' : await challenge();
  const decision = decideSequence(last, { ...request, digest }, expected);
  const isRepeated = decision === 'repeated' && stored !== null;
  if (isRepeated && !isCarriedOutAgain(stored, command)) return repeat(stored, command);
  const growth = growthOf(last.uses, request.uses);
  const isContinued = decision === 'continued';
  // The totals of a request that is carried out again were counted, unless the device was refused without a lease.
  const isNext = decision === 'next' || isRepeated;
  // Restored stores of the device and of the issuer may agree in the number, and not in the totals.
  if (!isContinued && (!isNext || growth === null)) {
    const known = {
      last: last.seq,
      challenge: await challenge(),
      uses: { ...last.uses },
      isRestored: stored !== null || (await mayBeForgotten(tables, license.licenseKey)),
    };
    return failWith('out_of_sequence', `The last request of this device has the number ${last.seq}.`, {
      known,
    });
  }
  if (growth === null) return failWith('lease_request_invalid', invalidTotals);
  const isForgotten = isContinued && (await mayBeForgotten(tables, license.licenseKey));
  const activationId = isForgotten ? await formerIdIn(tables, request) : null;
  const known =
    stored ?? newActivation(issued, command.signedRequest, { isContinued, activationId, context });
  const before = isContinued ? noteChallenge(known, { termMs: terms.termMs, now: context.now }) : known;
  // A restored store believes such a device once, so that a stranger cannot change the count without limit.
  const isFirstChallenge = isContinued && known.challengedAt.length === 0;
  const hadLease = known.expiresAt > 0 || (isFirstChallenge && isForgotten);
  const { activations, events } = tables;
  const carrying = { activations, events, issued, command, context, before, isContinued, hadLease };
  return await carryOut(carrying, growth);
}

/** A person may have a file signed again that was refused, perhaps after a seat was freed. */
function isCarriedOutAgain({ answer }: Activation, { isFile }: LeaseCommand): boolean {
  return isFile && answer.kind === 'refused';
}

/**
 * Whether this store may have forgotten leases of the license, because it was restored. If not, an activation that is missing
 * was removed here, and its uses are counted.
 */
async function mayBeForgotten(tables: Tables, licenseKey: string): Promise<boolean> {
  return (
    (await hasLostHistory(tables)) && (await tables.activations.count({ licenseKey })) < maxEndedActivations
  );
}

/**
 * The id that the device has from a forgotten activation: with that id, the upstream knows its uses again, and programs know
 * that a notice is about this device. Null: it names none, or the id is that of another device.
 */
async function formerIdIn({ activations }: Tables, { activationId }: LeaseRequest): Promise<string | null> {
  if (activationId === null || !/^[\w-]+$/.test(activationId)) return null;
  return (await activations.get(activationId)) === null ? activationId : null;
}

const invalidTotals =
  'A total of uses is lower than in an earlier request of this device, or has grown by more than 10,000 at once.';

/**
 * The stored answer. It is signed again, perhaps by another key, and no lease is longer than its key. Fails if a person wants
 * another end.
 */
function repeat(
  { answer, activationId, licenseKey }: Activation,
  { keyNotAfter, until }: LeaseCommand,
): Result<AnsweredRequest> {
  if (until !== null && answer.kind === 'lease' && answer.lease.expiresAt !== wholeSecond(until)) {
    const end = formatDatetime(answer.lease.expiresAt);
    const detail = `The request already has a lease until ${end}. Sign it without until, or make another request.`;
    return failWithFaults([{ parameter: 'until', code: 'already_signed', detail }]);
  }
  const isTooLong = answer.kind === 'lease' && answer.lease.expiresAt > keyNotAfter;
  const repeated = isTooLong
    ? ({ kind: 'lease', lease: { ...answer.lease, expiresAt: keyNotAfter } } as const)
    : answer;
  return { ...done({ answer: repeated, activationId, licenseKey, uses: noUses }), unchanged: true };
}

/**
 * The activation of a device that is unknown here. If the device continues a history, this store was restored from an
 * earlier backup: then the device may renew if a seat is free. `activationId`: null for another id.
 */
function newActivation(
  { license }: IssuedLicense,
  { request, device, digest }: SignedRequest,
  {
    isContinued,
    activationId,
    context,
  }: { isContinued: boolean; activationId: string | null; context: Context },
): Activation {
  const { now, random } = context;
  const problem: Problem = { code: 'lease_not_found', detail: 'There was no request.' };
  return {
    activationId: activationId ?? random.uuid(now),
    licenseKey: license.licenseKey,
    productKey: request.productKey,
    device,
    deviceName: request.deviceName,
    state: isContinued && request.act === 'renew' ? 'active' : 'ended',
    seq: 0,
    digest,
    answer: { kind: 'refused', problem },
    rev: 0,
    expiresAt: 0,
    seatUntil: 0,
    uses: noUses,
    createdAt: now,
    renewedAt: 0,
    movedAt: [],
    challengedAt: [],
    copiedAt: null,
  };
}

/** `reportedGrowth`: by how much the totals of the request are higher than those that were counted. */
async function carryOut(carrying: Carrying, reportedGrowth: UseTotals): Promise<Result<AnsweredRequest>> {
  const { activations, issued, before, context, command, isContinued, hadLease } = carrying;
  const { request } = command.signedRequest;
  const { terms, license } = issued;
  const { now } = context;
  const isLicenseEnabled = license.enabled && !hasEnded(issued.endsAt, now);
  const asked = { activations, request, before, isLicenseEnabled, terms, now };
  const decision = await decide(asked);
  // A device without a lease may be a stranger. The totals of its next request have what is not counted now.
  const isCounting = before.state !== 'blocked' && (decision.kind === 'lease' || hadLease);
  const growth = isCounting ? reportedGrowth : noUses;
  const { activationId: reporting, uses } = before;
  const counted = await issued.countUses(growth, { activationId: reporting, uses, isContinued });
  if (!counted.ok) return counted;
  const deviceName = issued.isBuyerForgotten === true ? null : (request.deviceName ?? before.deviceName);
  const reported = { uses: isCounting ? request.uses : uses, deviceName };
  if (decision.kind === 'refused') {
    return done(await record(carrying, { ...before, ...reported }, { answer: decision, uses: growth }));
  }
  const rev = nextRev(before, now);
  const common = { ...reported, rev };
  if (decision.kind === 'notice') {
    const { activationId, licenseKey, device } = before;
    const { state } = decision;
    const expiredAt = state === 'disabled' && license.enabled ? (license.expiresAt ?? null) : null;
    const known = { activationId, licenseKey, device, state, rev, issuedAt: now };
    const notice = { ...known, ...(expiredAt !== null && { expiredAt }) };
    const after = { ...decision.after, ...common };
    return done(await record(carrying, after, { answer: { kind: 'notice', notice }, uses: growth }));
  }
  const lease = leaseOf(carrying, { license: counted.value, seats: decision.seats, rev });
  if (!lease.ok) return lease;
  const { replaced } = decision;
  if (replaced !== null) {
    await activations.put(replaced);
    note(carrying, seatEvent(replaced.activationId, 'active', replaced.state));
  }
  const after = { ...before, ...common, ...seatOf(before, lease.value, terms) };
  return done(await record(carrying, after, { answer: { kind: 'lease', lease: lease.value }, uses: growth }));
}

/** An earlier lease of the device may be longer than the last one, so the seat is taken until the longest has expired. */
function seatOf(before: Activation, lease: Lease, { holdMs }: LeaseTerms): Partial<Activation> {
  const expiresAt = Math.max(before.expiresAt, lease.expiresAt);
  return { state: 'active', expiresAt, seatUntil: expiresAt + holdMs, renewedAt: lease.issuedAt };
}

async function record(
  { activations, events, issued, command, context: { now } }: Carrying,
  after: Activation,
  { answer, uses }: Pick<AnsweredRequest, 'answer' | 'uses'>,
): Promise<AnsweredRequest> {
  const { digest, request } = command.signedRequest;
  const { activationId, licenseKey } = after;
  await activations.put({ ...after, seq: request.seq, digest, answer: withoutNames(answer) });
  note({ events }, seatEvent(activationId, issued.stored?.state ?? null, after.state));
  const losesSeat = issued.stored !== null && hasSeat(issued.stored, now) && !hasSeat(after, now);
  if (issued.stored === null || losesSeat) await activations.pruneEnded(licenseKey, maxEndedActivations, now);
  return { answer, activationId, licenseKey, uses };
}

/** An answer to store: whoever is forgotten must not be left in the answers to other devices. */
function withoutNames(answer: LeaseAnswer): LeaseAnswer {
  if (answer.kind !== 'refused' || answer.problem.holders === undefined) return answer;
  const holders = answer.problem.holders.map((holder) => ({ ...holder, deviceName: null }));
  return { kind: 'refused', problem: { ...answer.problem, holders } };
}

/** Refuses a lease that would be shorter than a person wants it, or that could not be valid at all. */
function refuseDates(
  { until, keyNotAfter, knownUntil, endsAt }: LeaseLimits,
  now: number,
): Result<never> | null {
  if (keyNotAfter <= now) return failWith('leases_not_set_up', 'The signing key has ended.');
  if (until !== null && until <= now) {
    return failWithFaults([{ parameter: 'until', code: 'past', detail: 'until is in the past.' }]);
  }
  if (until !== null && until > keyNotAfter) {
    const detail = `The signing key ends at ${formatDatetime(keyNotAfter)}, and no lease is longer than its key.`;
    return failWithFaults([{ parameter: 'until', code: 'out_of_range', detail }]);
  }
  if (until !== null && until > endsAt) {
    const detail = `The license ends at ${formatDatetime(endsAt)}, and no lease is longer than its license.`;
    return failWithFaults([{ parameter: 'until', code: 'out_of_range', detail }]);
  }
  if (knownUntil <= now || (until !== null && until > knownUntil)) {
    const detail = 'The upstream confirmed the license too long ago for a lease of this length.';
    return failWith('verdict_expired', detail);
  }
  return null;
}

function leaseOf(
  { issued, command, context: { now }, before }: Carrying,
  { license, seats, rev }: Pick<Lease, 'license' | 'seats' | 'rev'>,
): Result<Lease> {
  const { terms, knownUntil, endsAt } = issued;
  const limits = { ...command, knownUntil, endsAt };
  const dates = leaseDates(terms, limits, now);
  const refusal = refuseDates(limits, now);
  if (refusal !== null) return refusal;
  if (dates === null) return failWith('verdict_expired', 'A lease would expire within this second.');
  const { licenseKey, productKey, uses, enabled, createdAt } = license;
  const members = { licenseKey, productKey, uses, enabled, createdAt };
  return done({
    ...dates,
    activationId: before.activationId,
    productKey: before.productKey,
    // A license key that is found in a forum must not reveal its buyer.
    license: { ...members, buyerEmail: terms.showsEmail ? license.buyerEmail : '', ...leasedTerms(license) },
    issuedAt: now,
    rev,
    seats,
    device: before.device,
    nonce: command.signedRequest.request.nonce,
  });
}
