import {
  queueOf,
  type DeathCause,
  type Operation,
  type OperationProgress,
} from '../../../domain/outbox/operation.ts';
import type { Bit } from '../statements.ts';

/** The columns that each state sets. The schema checks this. */
type ProgressRow =
  | { state: 'pending'; maybeApplied: Bit; unanswered: Bit }
  | { state: 'in_flight'; maybeApplied: Bit; unanswered: Bit; baseUses: number | null; sentAt: number }
  | { state: 'uncertain'; maybeApplied: Bit; baseUses: number | null; held: Bit }
  | { state: 'delivered' | 'inferred' | 'cancelled' | 'dropped'; finishedAt: number }
  | { state: 'dead'; cause: DeathCause }
  | { state: 'conflicted' };

type OperationRow = Omit<Operation, 'progress' | 'outage' | 'seenEnabled'> & {
  outage: Bit;
  seenEnabled: Bit | null;
} & ProgressRow;

export function operationFrom(row: OperationRow): Operation {
  return {
    id: row.id,
    seq: row.seq,
    kind: row.kind,
    subject: row.subject,
    productId: row.productId,
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
    seenRevision: row.seenRevision,
    payload: row.payload,
    progress: progressFrom(row),
  };
}

function progressFrom(row: ProgressRow): OperationProgress {
  switch (row.state) {
    case 'pending':
      return { state: row.state, ...doubtOf(row) };
    case 'in_flight': {
      const { state, baseUses, sentAt } = row;
      return { state, ...doubtOf(row), baseUses, sentAt };
    }
    case 'uncertain': {
      const { state, baseUses, held } = row;
      return { state, maybeApplied: row.maybeApplied === 1, baseUses, held: held === 1 };
    }
    case 'dead':
      return { state: row.state, cause: row.cause };
    case 'conflicted':
      return { state: row.state };
    case 'delivered':
    case 'inferred':
    case 'cancelled':
    case 'dropped':
      return { state: row.state, finishedAt: row.finishedAt };
    default:
      return row satisfies never;
  }
}

function doubtOf({ maybeApplied, unanswered }: { maybeApplied: Bit; unanswered: Bit }) {
  return { maybeApplied: maybeApplied === 1, unanswered: unanswered === 1 };
}

/** The columns of the progress that a state does not set. */
const unset = {
  maybeApplied: 0,
  unanswered: 0,
  held: 0,
  cause: null,
  baseUses: null,
  sentAt: null,
  finishedAt: null,
} as const;

export function columnsOf<Given extends Omit<Operation, 'seq'>>({ progress, ...columns }: Given) {
  return { ...columns, queue: queueOf[columns.kind], ...unset, ...progress };
}

/** Selects operations, for `operationFrom`. */
export const select: string = `SELECT seq, id, kind, subject, product_key AS productId, state, maybe_applied AS maybeApplied,
  unanswered, held, cause, base_uses AS baseUses, sent_at AS sentAt, attempts, failures, next_at AS nextAt, outage, credential,
  request_id AS requestId, reconcile_at AS reconcileAt, upstream, last_error AS lastError,
  seen_enabled AS seenEnabled, seen_revision AS seenRevision, payload, created_at AS createdAt, finished_at AS finishedAt FROM outbox`;
