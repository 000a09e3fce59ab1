import { formatDatetime } from '../../../domain/time.ts';
import type { Audited, FeatureUseCases } from '../../../service/audit.ts';
import type { Activation } from '../domain/lease.ts';
import { blockActivation, endActivation, recordExpiringLeases } from './activation.ts';
import { answerAgentLeaseRequest } from './agent-request.ts';
import type { AnsweredRequest, LeaseCommand } from './answer.ts';
import {
  bindIssuer,
  correctHeldLease,
  countHeldUse,
  endHeldLease,
  holdLease,
  recordLeaseAnswer,
  recordLeaseRefusal,
  storeLeaseRequest,
} from './held-lease.ts';
import { answerLeaseRequest } from './authority-request.ts';

export const useCases = {
  answerAgentLeaseRequest,
  answerLeaseRequest,
  bindIssuer,
  blockActivation,
  correctHeldLease,
  countHeldUse,
  endActivation,
  endHeldLease,
  holdLease,
  recordExpiringLeases,
  recordLeaseAnswer,
  recordLeaseRefusal,
  storeLeaseRequest,
};

type LeaseUseCases = typeof useCases;

declare module '../../../service/writer.ts' {
  interface UseCases extends LeaseUseCases {}
}

export const audited: FeatureUseCases['audited'] = {
  endActivation: (activation) => ({ act: 'activation.end', ...activationOf(activation) }),
  blockActivation: (activation) => ({ act: 'activation.block', ...activationOf(activation) }),
  answerLeaseRequest: signedFile,
  answerAgentLeaseRequest: signedFile,
};

/** Without the name of the device: the audit is never changed, and a name can be that of a person. */
function activationOf({ activationId, productKey }: Activation): Omit<Audited, 'act'> {
  return { subject: activationId, detail: `product ${productKey}` };
}

/** A lease for a machine without a network. */
function signedFile({ answer, activationId }: AnsweredRequest, { isFile }: LeaseCommand): Audited | null {
  if (!isFile || answer.kind === 'refused') return null;
  const detail =
    answer.kind === 'lease'
      ? `a lease until ${formatDatetime(answer.lease.expiresAt)}`
      : `a notice: ${answer.notice.state}`;
  return { act: 'lease.sign', subject: activationId, detail };
}
