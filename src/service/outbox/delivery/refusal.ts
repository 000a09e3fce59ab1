import { isDoubtful, type DeathCause, type Operation } from '../../../domain/operation.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { move } from '../lane.ts';

/**
 * The upstream will never take this operation. It is dead, unless an earlier attempt may have been applied:
 * then it is held for a person, with both facts. (src/sync/README.md, Operation states)
 */
export function refuseOperation(
  transaction: Transaction,
  operation: Operation,
  { cause, detail }: { cause: DeathCause; detail: string },
): Operation {
  const lastError = isDoubtful(operation)
    ? `${detail}; an earlier attempt of it may have been applied`
    : detail;
  return move(transaction, { ...operation, lastError }, { type: 'refused', cause });
}

/** An enable was delivered: disables before it that the upstream had refused hold the key no longer. */
export function endRefusedDisables(
  transaction: Transaction,
  enable: Operation,
  { now }: Pick<Context, 'now'>,
): void {
  for (const operation of transaction.operations.dead(enable.subject)) {
    if (operation.kind === 'disable' && operation.seq < enable.seq) {
      move(transaction, operation, { type: 'cancel', at: now });
    }
  }
}

/** The upstream knows the key again: what had died because it was missing is delivered after all. */
export function reviveOperations(transaction: Transaction, licenseKey: string): void {
  for (const operation of transaction.operations.dead(licenseKey)) {
    if (operation.progress.state === 'dead' && operation.progress.cause === 'missing') {
      move(transaction, operation, { type: 'revive' });
    }
  }
}
