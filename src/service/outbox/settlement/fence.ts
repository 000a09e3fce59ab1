import { fenceAfter } from '../../../domain/outbox/fence.ts';
import { isHeld, laneOf, type LaneName, type Operation } from '../../../domain/outbox/operation.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { move, scheduleHead } from '../lane.ts';
import { holdIfElsewhere } from '../control/upstream-binding.ts';
import { renewLostPast } from './lost-past.ts';

/**
 * The answer to an attempt was lost: until the fence has passed, it may still be applied. A disable sets a
 * value, so it is simply repeated, but nothing else of its lane overtakes it; anything else becomes
 * uncertain and is read back after the fence, or held where the upstream has become another meanwhile.
 * (src/sync/README.md, After a lost response)
 */
export function loseAnswer(
  transaction: Transaction,
  operation: Operation,
  { fenceMs }: { fenceMs: number },
  context: Context,
): Operation {
  const fencedUntil = fenceAfter(context.steady, fenceMs);
  const event = operation.kind === 'disable' ? 'repeat' : 'ambiguous';
  const lost = move(transaction, { ...operation, fencedUntil }, { type: event });
  return holdIfElsewhere(transaction, lost, context);
}

/**
 * The clock may have been turned while the process was stopped, so the time that passed is unknown: at a start,
 * every fence that had not certainly passed at `reached` (`Clock.steady`) begins anew, and so does that of
 * every operation in doubt.
 */
export function renewFences(
  transaction: Transaction,
  { reached, fenceMs }: { reached: number; fenceMs: number },
  { steady }: Context,
): void {
  const { operations } = transaction;
  const fencedUntil = fenceAfter(steady, fenceMs);
  operations.extendFences(reached, fencedUntil);
  renewLostPast(transaction, { reached, until: fencedUntil });
  const lanes = new Map<string, { subject: string; lane: LaneName }>();
  for (const operation of operations.withState('uncertain')) {
    if (!isHeld(operation)) {
      operations.put({ ...operation, fencedUntil });
      const { subject, kind } = operation;
      const lane = laneOf[kind];
      lanes.set(`${subject}\n${lane}`, { subject, lane });
    }
  }
  for (const { subject, lane } of lanes.values()) {
    const head = operations.head(subject, lane);
    scheduleHead(transaction, subject, lane, {
      at: Math.max(steady, head?.nextAt ?? steady),
      failures: head?.failures ?? 0,
      outage: head?.outage ?? false,
    });
  }
}
