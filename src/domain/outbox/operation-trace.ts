import type { Operation, OperationProgress, OperationState } from './operation.ts';
import type { OperationEvent } from './operation-transitions.ts';

/** What the log tells of the way of an operation (src/sync/README.md, The log of an operation). */
export const tracePoints = [
  'queued',
  'sent',
  'delivered',
  'in_doubt',
  'settled',
  'held',
  'dead',
  'revived',
  'conflicted',
  'cancelled',
  'retried',
  'dropped',
  'confirmed',
] as const;

export type TracePoint = (typeof tracePoints)[number];

/** A point on the way of an operation, and what the log tells of the operation as it stood then. */
export type Traced = Pick<
  Operation,
  'id' | 'kind' | 'subject' | 'productKey' | 'attempts' | 'credential' | 'requestId' | 'lastError'
> & { point: TracePoint; state: OperationState };

/** What is told of an operation at a point. */
export function traced(point: TracePoint, operation: Operation): Traced {
  const { id, kind, subject, productKey, attempts, credential, requestId, lastError, progress } = operation;
  const { state } = progress;
  return { point, id, kind, subject, productKey, state, attempts, credential, requestId, lastError };
}

/** The point that an event brings an operation to; null: it waits to be sent again, as the loops tell with the reason. */
export function tracePointOf(event: OperationEvent, after: OperationProgress): TracePoint | null {
  switch (event.type) {
    case 'send':
      return 'sent';
    case 'applied':
      return 'delivered';
    case 'ambiguous':
    case 'repeat':
    case 'suspect':
    case 'doubt':
      return 'in_doubt';
    case 'needless':
    case 'read_applied':
    case 'read_absent':
    case 'overtaken':
      return 'settled';
    case 'refused':
      return after.state === 'dead' ? 'dead' : 'held';
    case 'hold':
      return 'held';
    case 'revive':
      return 'revived';
    case 'conflict':
      return 'conflicted';
    case 'cancel':
      return 'cancelled';
    case 'retry':
    case 'look':
      return 'retried';
    case 'drop':
      return 'dropped';
    case 'confirm':
      return 'confirmed';
    case 'not_applied':
      return null;
    default:
      return event satisfies never;
  }
}
