import { isCountUncertain, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { Reader, Transaction, AuthorityReader, AuthorityTransaction } from '../tables.ts';

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

/*
 * A store that was restored or copied may lack what happened after the backup. Devices still know what they have reported,
 * and the upstream of an agent still knows which licenses were disabled.
 */

const setting = 'history_lost';

/** `run`: the first run of the process on the restored store. `at`: when it was restored (epoch ms). */
type Loss = { run: number; at: number };

export async function noteLostHistory({ settings }: AuthorityTransaction, loss: Loss): Promise<void> {
  await settings.set(setting, JSON.stringify(loss));
}

/**
 * The same, at an agent. The clock of a store goes on from a time that was stored up to a minute before the last
 * confirmation, so the confirmations of before could look newer than the loss.
 */
export async function noteLostConfirmations(transaction: Transaction, { run, at }: Loss): Promise<void> {
  const last = transaction.snapshots.lastConfirmedAt();
  await noteLostHistory(transaction, { run, at: Math.max(at, last + 1) });
}

/** Whether the store was ever restored or copied. */
export async function hasLostHistory({ settings }: Pick<AuthorityReader, 'settings'>): Promise<boolean> {
  return (await settings.get(setting)) !== null;
}

/** Whether the upstream has said nothing about the license since the store of this agent was restored or copied. */
export function isOfLostHistory(
  { settings }: Pick<Reader, 'settings'>,
  { run, confirmedAt }: Pick<LicenseSnapshot, 'run' | 'confirmedAt'>,
): boolean {
  const loss = JSON.parse(settings.get(setting) ?? 'null') as Loss | null;
  return loss !== null && run < loss.run && confirmedAt < loss.at;
}
