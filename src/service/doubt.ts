import type { Observation } from '../domain/observation.ts';
import { move, laneOfOperation, scheduleHead } from './lanes.ts';
import type { Transaction } from './tables.ts';

/**
 * What was in flight when the process ended may or may not have been applied: it becomes uncertain,
 * to be read back at `settleAt` (epoch ms), once nothing of it can still be on its way.
 */
export function doubtInFlight(transaction: Transaction, settleAt: number): void {
  for (const operation of transaction.operations.withState('in_flight')) {
    move(transaction, operation, { type: 'ambiguous' });
    const lastError = 'the process ended while this was in flight';
    scheduleHead(transaction, operation.subject, laneOfOperation(operation), { at: settleAt, lastError });
  }
}

/**
 * The count moved while this process was not there, in a way that its own doubtful operations do not
 * explain: those of before this start may have been delivered by a past that this store does not
 * remember (a snapshot, a restored backup), so all of them are read back against the count last seen.
 */
export function doubtEarlier(
  transaction: Transaction,
  observation: Observation,
  bootedAt: number,
  settleAt: number,
): boolean {
  const { licenseKey, uses } = observation.license;
  const earlier = transaction.operations
    .lane(licenseKey, 'counter')
    .filter((operation) => operation.createdAt < bootedAt && operation.progress.state === 'pending');
  for (const operation of earlier) move(transaction, operation, { type: 'doubt', baseUses: uses });
  if (earlier.length > 0) {
    const lastError = 'the count upstream moved while this process was away';
    scheduleHead(transaction, licenseKey, 'counter', { at: settleAt, lastError });
  }
  return earlier.length > 0;
}
