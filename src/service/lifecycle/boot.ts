import { isCountInQuestion, type Observation } from '../../domain/agent/observation.ts';
import type { Reader, Transaction } from '../tables.ts';

/** The number of what began with this start of the process, or with another upstream since; from 1. */
export function currentBoot(reader: Reader): number {
  return Number(reader.settings.get('boot') ?? 0);
}

/** Whether a count was seen before the current boot. */
export function isOfEarlierBoot(reader: Reader, observation: Observation): boolean {
  return !isCountInQuestion(observation) && observation.boot !== currentBoot(reader);
}

/** The highest `seq` of an operation when the process started. */
export function lastSeqBefore(reader: Reader): number {
  return Number(reader.settings.get('boot_seq') ?? 0);
}

/** Counts a start of the process. */
export function countStart(transaction: Transaction): void {
  beginBoot(transaction);
  transaction.settings.set('boot_seq', String(transaction.operations.lastSeq()));
}

/** Makes every count that was seen until now one of an earlier boot; returns the number of the one that begins. */
export function beginBoot(transaction: Transaction): number {
  const boot = currentBoot(transaction) + 1;
  transaction.settings.set('boot', String(boot));
  return boot;
}
