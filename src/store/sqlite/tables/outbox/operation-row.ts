import {
  queueOf,
  type DeathCause,
  type QueueName,
  type Operation,
  type OperationProgress,
} from '../../../../domain/outbox/operation.ts';
import { bit, type Bit } from '../../statements.ts';

/** The columns that each state sets. The schema checks this. */
type ProgressRow =
  | { state: 'pending'; doubtful: Bit }
  | { state: 'in_flight'; doubtful: Bit; baseUses: number | null; sentAt: number }
  | { state: 'uncertain'; doubtful: Bit; baseUses: number | null; held: Bit }
  | { state: 'delivered' | 'inferred' | 'cancelled' | 'dropped'; finishedAt: number }
  | { state: 'dead'; cause: DeathCause }
  | { state: 'conflicted' };

export type OperationRow = Omit<Operation, 'progress' | 'outage' | 'seenEnabled'> & {
  outage: Bit;
  seenEnabled: Bit | null;
} & ProgressRow;

/** The columns of an `OperationRow`. */
export const operationColumns = `seq, id, kind, subject, product_key AS productKey, state, maybe_applied AS doubtful, held,
  cause, base_uses AS baseUses, sent_at AS sentAt, attempts, failures, next_at AS nextAt, outage,
  credential, request_id AS requestId, reconcile_at AS reconcileAt, upstream, last_error AS lastError, seen_enabled AS seenEnabled, payload, created_at AS createdAt, finished_at AS finishedAt`;

export function operationFrom(row: OperationRow): Operation {
  return {
    id: row.id,
    seq: row.seq,
    kind: row.kind,
    subject: row.subject,
    productKey: row.productKey,
    createdAt: row.createdAt,
    credential: row.credential,
    requestId: row.requestId,
    attempts: row.attempts,
    failures: row.failures,
    nextAt: row.nextAt,
    outage: row.outage === 1,
    reconcileAt: row.reconcileAt,
    upstream: row.upstream,
    lastError: row.lastError,
    seenEnabled: row.seenEnabled === null ? null : row.seenEnabled === 1,
    payload: row.payload,
    progress: progressFrom(row),
  };
}

function progressFrom(row: ProgressRow): OperationProgress {
  switch (row.state) {
    case 'pending':
      return { state: 'pending', maybeApplied: row.doubtful === 1 };
    case 'in_flight':
      return {
        state: 'in_flight',
        maybeApplied: row.doubtful === 1,
        baseUses: row.baseUses,
        sentAt: row.sentAt,
      };
    case 'uncertain':
      return {
        state: 'uncertain',
        maybeApplied: row.doubtful === 1,
        baseUses: row.baseUses,
        held: row.held === 1,
      };
    case 'delivered':
    case 'inferred':
    case 'cancelled':
    case 'dropped':
      return { state: row.state, finishedAt: row.finishedAt };
    case 'dead':
      return { state: 'dead', cause: row.cause };
    case 'conflicted':
      return { state: 'conflicted' };
    default:
      return row satisfies never;
  }
}

type IdentityColumns = {
  id: string;
  kind: string;
  subject: string;
  queue: QueueName;
  productKey: string | null;
  createdAt: number;
  credential: string | null;
  requestId: string | null;
};

/** The columns that never change. */
export function identityColumns(operation: Omit<Operation, 'seq'>): IdentityColumns {
  const { id, kind, subject, productKey, createdAt, credential, requestId } = operation;
  return { id, kind, subject, queue: queueOf[kind], productKey, createdAt, credential, requestId };
}

type ProgressColumns = {
  state: string;
  doubtful: Bit;
  held: Bit;
  cause: DeathCause | null;
  baseUses: number | null;
  sentAt: number | null;
  finishedAt: number | null;
};
type DeliveryColumns = ProgressColumns & {
  attempts: number;
  failures: number;
  nextAt: number | null;
  outage: Bit;
  reconcileAt: number | null;
  upstream: string | null;
  lastError: string | null;
  seenEnabled: Bit | null;
  payload: string | null;
};

/** The columns that change until delivery. */
export function deliveryColumns(operation: Omit<Operation, 'seq'>): DeliveryColumns {
  const {
    attempts,
    failures,
    nextAt,
    outage,
    reconcileAt,
    upstream,
    lastError,
    seenEnabled,
    payload,
    progress,
  } = operation;
  return {
    ...progressColumns(progress),
    attempts,
    failures,
    nextAt,
    outage: bit(outage),
    reconcileAt,
    upstream,
    lastError,
    seenEnabled: seenEnabled === null ? null : bit(seenEnabled),
    payload,
  };
}

const unset = {
  doubtful: 0,
  held: 0,
  cause: null,
  baseUses: null,
  sentAt: null,
  finishedAt: null,
} as const;

function progressColumns(progress: OperationProgress): ProgressColumns {
  switch (progress.state) {
    case 'pending':
      return { ...unset, state: progress.state, doubtful: bit(progress.maybeApplied) };
    case 'in_flight':
    case 'uncertain': {
      const { maybeApplied, ...columns } = progress;
      const isHeld = progress.state === 'uncertain' && progress.held;
      return { ...unset, ...columns, doubtful: bit(maybeApplied), held: bit(isHeld) };
    }
    case 'delivered':
    case 'inferred':
    case 'cancelled':
    case 'dropped':
    case 'conflicted':
    case 'dead':
      return { ...unset, ...progress };
    default:
      return progress satisfies never;
  }
}
