import type { Reader, Transaction } from '../tables.ts';

/**
 * The boot of an observation whose count is in question: what it may contain is not known until the next read, which
 * is then no sign of another writer. No start counts from it.
 */
export const noBoot = 0;

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

/** Makes every count that was seen until now one from before a start; returns the number of what begins now. */
export function endBoot(transaction: Transaction): number {
  const boot = currentBoot(transaction) + 1;
  transaction.settings.set('boot', String(boot));
  return boot;
}
