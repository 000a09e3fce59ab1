import type { Reader, Transaction } from './tables.ts';

/** Which start of the process this is; counted from 1. */
export function currentBoot(reader: Reader): number {
  return Number(reader.settings.get('boot') ?? 0);
}

/** When the current start happened, in epoch ms. */
export function bootedAt(reader: Reader): number {
  return Number(reader.settings.get('booted_at') ?? 0);
}

/** Counts a start at `now`, and says which it is. */
export function startOfBoot(transaction: Transaction, now: number): number {
  const boot = currentBoot(transaction) + 1;
  transaction.settings.set('boot', String(boot));
  transaction.settings.set('booted_at', String(now));
  return boot;
}
