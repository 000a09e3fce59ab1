import { isCountUncertain, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { Reader, Transaction } from '../tables.ts';

/** A run begins with each start of the process and each change of the upstream; counts from 1. */
export function currentRun(reader: Reader): number {
  return Number(reader.settings.get('run') ?? 0);
}

/** Whether a count was seen before the current run. */
export function isOfEarlierRun(reader: Reader, snapshot: LicenseSnapshot): boolean {
  return !isCountUncertain(snapshot) && snapshot.run !== currentRun(reader);
}

/** The highest `seq` of an operation when the process started. */
export function lastSeqBefore(reader: Reader): number {
  return Number(reader.settings.get('run_seq') ?? 0);
}

export function countStart(transaction: Transaction): void {
  beginRun(transaction);
  transaction.settings.set('run_seq', String(transaction.operations.lastSeq()));
}

/** Begins a new run: all counts seen so far belong to an earlier run. Returns its number. */
export function beginRun(transaction: Transaction): number {
  const run = currentRun(transaction) + 1;
  transaction.settings.set('run', String(run));
  return run;
}
