import type { Reader, Transaction } from '../tables.ts';

/** The number of this start of the process, from 1. */
export function currentBoot(reader: Reader): number {
  return Number(reader.settings.get('boot') ?? 0);
}

/** The highest `seq` of an operation when the process started. */
export function lastSeqBefore(reader: Reader): number {
  return Number(reader.settings.get('boot_seq') ?? 0);
}

/** Counts a start; returns its number. */
export function startOfBoot(transaction: Transaction): number {
  const boot = currentBoot(transaction) + 1;
  transaction.settings.set('boot', String(boot));
  transaction.settings.set('boot_seq', String(transaction.operations.lastSeq()));
  return boot;
}
