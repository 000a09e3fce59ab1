import {
  isCountUncertain,
  isOlderEvidence,
  type LicenseSnapshot,
} from '../../../domain/agent/license-snapshot.ts';
import { beginRun, currentRun } from '../../lifecycle/run-count.ts';
import type { Context } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';

/* Which stored answers are from a former upstream, or from an upstream at a former address. */

/** The first run at the present upstream. */
const runSetting = 'upstream_run';
const addressSinceSetting = 'upstream_address';

/** Every snapshot until now, also of this run, is from a former upstream. */
export function endFormerUpstream(transaction: Transaction): void {
  transaction.settings.set(runSetting, String(beginRun(transaction)));
}

/** Whether another upstream said what the snapshot says. */
export function isOfOtherUpstream({ settings }: Reader, snapshot: LicenseSnapshot): boolean {
  return !isCountUncertain(snapshot) && snapshot.run < Number(settings.get(runSetting) ?? 0);
}

/** Since when (epoch ms) and which run the upstream has its address; the address changes only at a start. */
export type AddressSince = { run: number; at: number };

export function beginAddress(transaction: Transaction, { now }: Pick<Context, 'now'>): void {
  const since: AddressSince = { run: currentRun(transaction), at: now };
  transaction.settings.set(addressSinceSetting, JSON.stringify(since));
}

/** Null: the upstream has always had this address. */
export function upstreamAddressSince({ settings }: Reader): AddressSince | null {
  return JSON.parse(settings.get(addressSinceSetting) ?? 'null') as AddressSince | null;
}

/** Whether the snapshot is from an upstream at another address, and this one has said nothing yet. */
export function isOfFormerAddress(
  since: AddressSince | null,
  { run, confirmedAt }: Pick<LicenseSnapshot, 'run' | 'confirmedAt'>,
): boolean {
  return since !== null && run < since.run && confirmedAt < since.at;
}

/**
 * Whether a response is older than what is known of a key. It must not replace a newer "no". What an upstream at another
 * address has said does not count.
 */
export function isOlderThanKnown(reader: Reader, snapshot: LicenseSnapshot, confirmedAt: number): boolean {
  return isOlderEvidence(confirmedAt, snapshot) && !isOfFormerAddress(upstreamAddressSince(reader), snapshot);
}
