import {
  actForLease,
  afterAnswer,
  afterRefusal,
  continuedTotals,
  nextAct,
  pendingUses,
  totalsToSend,
  type ReceivedDocument,
} from '../../../../src/features/leases/domain/held-lease.ts';
import type {
  HeldLease,
  KnownSequence,
  LeaseAct,
  LeaseAnswer,
  LeaseRequest,
  SignedRequest,
  UseTotals,
} from '../../../../src/features/leases/domain/lease.ts';
import { problems } from '../../../../src/domain/problem/problem-table.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import type { AnsweredRequest } from '../../../../src/features/leases/service/answer.ts';
import { buildRequest, thumbprint } from '../support/activation-builders.ts';
import { signed } from '../support/lease-harness.ts';

const noUses: UseTotals = { recorded: 0, returned: 0 };

/** The parts of a holder's state that a copy of its state directory has. */
export type HolderState = { held: HeldLease; signed: SignedRequest | null };

/**
 * A holder with one license key, without signatures and storage. The rules are the real ones (features/leases/domain/held-lease.ts). It
 * sends one request at a time, and repeats it until it is answered.
 */
export class HolderModel {
  readonly name: string;
  /** The thumbprint of its key. */
  device: string;
  state: HolderState;

  constructor(name: string, licenseKey: string, productKey = 'press') {
    this.name = name;
    this.device = thumbprint(name);
    this.state = {
      signed: null,
      held: {
        licenseKey,
        productKey,
        activationId: null,
        document: null,
        rev: 0,
        seq: 0,
        request: null,
        uses: noUses,
        confirmedUses: noUses,
        wanted: 'active',
        createdAt: 0,
      },
    };
  }

  get held(): HeldLease {
    return this.state.held;
  }

  /** Whether a request waits for its answer, or uses are not confirmed. */
  get hasSomethingToSay(): boolean {
    return this.state.signed !== null || pendingUses(this.held) > 0;
  }

  get nextAct(): LeaseAct | null {
    return nextAct(this.held);
  }

  isWaitingFor({ digest }: SignedRequest): boolean {
    return this.state.signed?.digest === digest;
  }

  want(wanted: HeldLease['wanted']): void {
    this.#update({ wanted });
  }

  use({ recorded, returned }: UseTotals): void {
    const { uses } = this.held;
    this.#update({
      uses: { recorded: uses.recorded + recorded, returned: uses.returned + returned },
    });
  }

  /** The request to send now; null: none. `isAsked`: a program wants a lease. */
  request({
    isAsked,
    replaces,
    now,
  }: {
    isAsked: boolean;
    replaces: string | null;
    now: number;
  }): SignedRequest | null {
    if (this.state.signed !== null) return this.state.signed;
    const { held } = this;
    const isWanted = isAsked && held.wanted === 'active';
    const act = (isWanted ? actForLease(held, now) : null) ?? nextAct(held);
    if (act === null) return null;
    return this.#sign({
      act,
      seq: held.seq + 1,
      uses: totalsToSend(held),
      replaces: act === 'take' ? replaces : null,
    });
  }

  /** Takes over what the issuer has said to a request of this device. */
  receive(request: SignedRequest, result: Result<AnsweredRequest>): void {
    const isOwn = this.isWaitingFor(request);
    const { held } = this;
    if (result.ok) {
      const received = documentIn(result.value.answer);
      if (received !== null) this.#replace(afterAnswer(held, request.digest, received));
      else if (isOwn) this.#replace(afterRefusal(held, true));
      return;
    }
    // After a failure of the server, the same request is sent again.
    if (!isOwn || problems[result.problem.code].status >= 500) return;
    if (result.problem.code !== 'out_of_sequence') return this.#replace(afterRefusal(held, false));
    const known = result.problem.known as KnownSequence;
    const { last, challenge } = known;
    this.#update(continuedTotals(held, known));
    const { act, replaces } = request.request;
    const { activationId } = held;
    const uses = totalsToSend(this.held);
    this.#sign({ act, replaces, seq: last + 1, challenge, activationId, uses });
  }

  #sign(request: Partial<LeaseRequest> & Pick<LeaseRequest, 'act' | 'seq' | 'uses'>): SignedRequest {
    const { licenseKey, productKey } = this.held;
    const own = signed(
      this.device,
      buildRequest({ licenseKey, productKey, deviceName: this.name, ...request }),
    );
    const { act, seq, uses } = request;
    this.state = {
      held: { ...this.held, seq, request: { text: own.digest, act, uses } },
      signed: own,
    };
    return own;
  }

  #update(changes: Partial<HeldLease>): void {
    this.state = { ...this.state, held: { ...this.held, ...changes } };
  }

  #replace(held: HeldLease): void {
    this.state = { held, signed: held.request === null ? null : this.state.signed };
  }
}

function documentIn(answer: LeaseAnswer): ReceivedDocument | null {
  if (answer.kind === 'refused') return null;
  if (answer.kind === 'lease') {
    const { activationId, rev, license, refreshAt, expiresAt, issuedAt } = answer.lease;
    return {
      activationId,
      rev,
      document: { kind: 'lease', text: '', issuedAt, license, refreshAt, expiresAt },
    };
  }
  const { activationId, rev, state, issuedAt, expiredAt } = answer.notice;
  const ended = expiredAt === undefined ? {} : { expiredAt };
  return {
    activationId,
    rev,
    document: { kind: 'notice', text: '', issuedAt, license: null, state, ...ended },
  };
}
