import {
  queueOf,
  type DeathCause,
  type Operation,
  type OperationProgress,
} from '../../../domain/outbox/operation.ts';
import { columns, type SqlValue } from '../../sql.ts';

/** The columns that the states set. The schema checks which of them each state sets. */
type ProgressRow = {
  state: Operation['progress']['state'];
  maybeApplied: boolean;
  unanswered: boolean;
  held: boolean;
  cause: DeathCause | null;
  baseUses: number | null;
  sentAt: number | null;
  finishedAt: number | null;
};

type OperationRow = Omit<Operation, 'progress'> & ProgressRow;

const outbox =
  columns<OperationRow>(`seq, id, kind, amount, subject, product_key AS productId, state, maybe_applied BOOL,
  unanswered BOOL, held BOOL, cause, base_uses, sent_at, attempts, failures, next_at, outage BOOL, credential,
  request_id, reconcile_at, upstream, last_error, seen_enabled BOOL, seen_revision, payload, created_at, finished_at`);

/** Selects operations, for `operationFrom`. */
export const select: string = `SELECT ${outbox.list} FROM outbox`;

export const insertOperation: string = outbox.insert('outbox', 'queue');

/** Columns that never change, except the subject. */
const fixed = [
  'seq',
  'id',
  'kind',
  'amount',
  'subject',
  'product_key',
  'created_at',
  'credential',
  'request_id',
];
export const updateOperation: string = `UPDATE outbox SET ${outbox.set(fixed)} WHERE seq = $1 AND id = $2`;

/** Names each member: to copy all but some is slow. */
export function operationFrom(raw: never): Operation {
  const row = outbox.from(raw);
  return {
    id: row.id,
    seq: row.seq,
    kind: row.kind,
    amount: row.amount,
    subject: row.subject,
    productId: row.productId,
    createdAt: row.createdAt,
    credential: row.credential,
    requestId: row.requestId,
    attempts: row.attempts,
    failures: row.failures,
    nextAt: row.nextAt,
    outage: row.outage,
    reconcileAt: row.reconcileAt,
    upstream: row.upstream,
    lastError: row.lastError,
    seenEnabled: row.seenEnabled,
    seenRevision: row.seenRevision,
    payload: row.payload,
    progress: progressFrom(row),
  };
}

function progressFrom(row: ProgressRow): OperationProgress {
  const { state, maybeApplied, unanswered, held, baseUses } = row;
  switch (state) {
    case 'pending':
      return { state, maybeApplied, unanswered };
    case 'in_flight':
      return { state, maybeApplied, unanswered, baseUses, sentAt: row.sentAt as number };
    case 'uncertain':
      return { state, maybeApplied, baseUses, held };
    case 'dead':
      return { state, cause: row.cause as DeathCause };
    case 'conflicted':
      return { state };
    case 'delivered':
    case 'inferred':
    case 'cancelled':
    case 'dropped':
      return { state, finishedAt: row.finishedAt as number };
    default:
      return state satisfies never;
  }
}

/** The columns of the progress that a state does not set. */
const unset = {
  maybeApplied: false,
  unanswered: false,
  held: false,
  cause: null,
  baseUses: null,
  sentAt: null,
  finishedAt: null,
};

/** The values for `insertOperation`, which gives the number, and for `updateOperation`. */
export function operationValues({
  progress,
  ...same
}: Omit<Operation, 'seq'> & { seq: number | null }): SqlValue[] {
  const row = { ...same, ...unset, ...progress } as OperationRow;
  return [...outbox.values(row), queueOf[same.kind]];
}
