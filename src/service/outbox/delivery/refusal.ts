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

/**
 * A change of the state was delivered: whatever became of those before it that are held, it matters no longer. Disables
 * that the upstream had refused hold the key until an enable is delivered.
 */
export function endOvertaken(
  transaction: Transaction,
  delivered: Operation,
  { now }: Pick<Context, 'now'>,
): void {
  const { operations } = transaction;
  const { subject, seq } = delivered;
  const refused = delivered.kind === 'enable' ? operations.dead(subject).filter(isDisable) : [];
  for (const operation of [...refused, ...operations.held(subject, 'state')]) {
    if (operation.seq < seq) move(transaction, operation, { type: 'overtaken', at: now });
  }
}

function isDisable({ kind }: Operation): boolean {
  return kind === 'disable';
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
