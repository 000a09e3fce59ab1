import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { AuthorityReader, AuthorityTransaction, Reader, Transaction } from '../tables.ts';

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
