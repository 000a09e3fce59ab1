import type { Operation, OperationEvent, OperationProgress, OperationState } from './operation.ts';

/** The log lines of an operation (src/sync/README.md, The log of an operation). */
export const tracePoints = [
  'queued',
  'sent',
  'delivered',
  'uncertain',
  'reconciled',
  'held',
  'dead',
  'reopened',
  'conflicted',
  'cancelled',
  'retried',
  'dropped',
  'confirmed',
] as const;

type TracePoint = (typeof tracePoints)[number];

/** A log line, with the operation as it was at that time. */
export type Traced = Pick<
  Operation,
  'id' | 'kind' | 'amount' | 'subject' | 'productId' | 'attempts' | 'credential' | 'requestId' | 'lastError'
> & { point: TracePoint; state: OperationState };

export function traced(point: TracePoint, operation: Operation): Traced {
  const { id, kind, amount, subject, productId, attempts, credential, requestId, lastError, progress } =
    operation;
  const { state } = progress;
  return { point, id, kind, amount, subject, productId, state, attempts, credential, requestId, lastError };
}

/** The log line for an event; null if the delivery loop logs the reason itself. */
export function tracePointOf(event: OperationEvent, after: OperationProgress): TracePoint | null {
  switch (event.type) {
    case 'send':
      return 'sent';
    case 'applied':
      return 'delivered';
    case 'ambiguous':
    case 'repeat':
    case 'lose':
    case 'resend':
    case 'doubt':
      return 'uncertain';
    case 'needless':
    case 'read_applied':
    case 'read_absent':
    case 'superseded':
      return 'reconciled';
    case 'refused':
      return after.state === 'dead' ? 'dead' : 'held';
    case 'hold':
      return 'held';
    case 'reopen':
      return 'reopened';
    case 'conflict':
      return 'conflicted';
    case 'cancel':
      return 'cancelled';
    case 'retry':
    case 'recheck':
      return 'retried';
    case 'drop':
      return 'dropped';
    case 'confirm':
      return 'confirmed';
    case 'not_applied':
    case 'resume':
      return null;
    default:
      return event satisfies never;
  }
}
