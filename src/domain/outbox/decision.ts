import type { Operation } from './operation.ts';
import { nextProgress, type OperationEvent } from './operation-transitions.ts';

/** What a person decides about an operation: send it again, give it up, or say that it was applied. */
export type Decision = 'retry' | 'drop' | 'confirm';

/** A coupon can be looked for before it is created again; what a count or a state shows has been read already. */
export function eventOfDecision(
  { kind, progress }: Pick<Operation, 'kind' | 'progress'>,
  decision: Decision,
  at: number,
): OperationEvent {
  if (decision !== 'retry') return { type: decision, at };
  return { type: kind === 'create_coupon' && progress.state !== 'pending' ? 'look' : 'retry' };
}

/** Whether a decision can be made about an operation as it stands. */
export function isOpenTo(operation: Pick<Operation, 'kind' | 'progress'>, decision: Decision): boolean {
  return nextProgress(operation.progress, eventOfDecision(operation, decision, 0)) !== null;
}
