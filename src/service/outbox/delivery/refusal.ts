import { isDoubtful, type DeathCause, type Operation } from '../../../domain/outbox/operation.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { laneOfOperation, move, scheduleHead } from '../lane.ts';

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

/** An enable was delivered: disables before it that the upstream had refused, or that are held, hold the key no longer. */
export function endRefusedDisables(
  transaction: Transaction,
  enable: Operation,
  { now }: Pick<Context, 'now'>,
): void {
  const { operations } = transaction;
  const { subject } = enable;
  for (const operation of [...operations.dead(subject), ...operations.held(subject, 'state')]) {
    if (operation.kind === 'disable' && operation.seq < enable.seq) {
      move(transaction, operation, { type: 'overtaken', at: now });
    }
  }
}

/** The upstream knows the key again: what had died because it was missing goes back to its lane, in its order. */
export function reviveOperations(
  transaction: Transaction,
  licenseKey: string,
  { steady }: Pick<Context, 'steady'>,
): void {
  const { operations } = transaction;
  const isMissing = ({ progress }: Operation): boolean =>
    progress.state === 'dead' && progress.cause === 'missing';
  const revived = operations.dead(licenseKey).filter(isMissing);
  for (const lane of new Set(revived.map(laneOfOperation))) {
    // One that a person has retried meanwhile stands behind those that come back.
    const head = operations.head(licenseKey, lane);
    if (head !== null) operations.put({ ...head, nextAt: null, outage: false });
    for (const operation of revived.filter((each) => laneOfOperation(each) === lane)) {
      move(transaction, operation, { type: 'revive' });
    }
    scheduleHead(transaction, licenseKey, lane, { at: steady });
  }
}
