import type { Reader, Transaction } from '../tables.ts';

/** Which start of the process this is; counted from 1. */
export function currentBoot(reader: Reader): number {
  return Number(reader.settings.get('boot') ?? 0);
}

/** The `seq` of the last operation that was there when the process started. */
export function lastSeqBefore(reader: Reader): number {
  return Number(reader.settings.get('boot_seq') ?? 0);
}

/** Counts a start, and says which it is. */
export function startOfBoot(transaction: Transaction): number {
  const boot = currentBoot(transaction) + 1;
  transaction.settings.set('boot', String(boot));
  transaction.settings.set('boot_seq', String(transaction.operations.lastSeq()));
  return boot;
}
