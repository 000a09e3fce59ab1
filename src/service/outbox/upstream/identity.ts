import type { LicenseSnapshot } from '../../../domain/agent/license-snapshot.ts';
import { storeOf } from '../../../domain/latchkey.ts';
import { isUnanswered, type Operation } from '../../../domain/outbox/operation.ts';
import type { Keyed } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';

/*
 * What the upstream is: its address, and if it is a Latchkey the history of its store, which each answer to an agent names
 * (`Latchkey-Epoch`). From the first such answer on, each change is sent under the id of its operation. A gateway that removes
 * the header later changes nothing. (src/sync/BETWEEN-LATCHKEYS.md, Ids of operations)
 */

const addressSetting = 'upstream';
const epochSetting = 'upstream_epoch';
const epochNumberSetting = 'upstream_epoch_number';

type Settings = Pick<Reader, 'settings'>;

/** The base URL of the upstream; null: this store has had none yet. */
export function upstreamAddress({ settings }: Settings): string | null {
  return settings.get(addressSetting);
}

/** At another address nothing is known of the upstream. */
export function storeAddress({ settings }: Transaction, baseUrl: string): void {
  settings.set(addressSetting, baseUrl);
  settings.set(epochSetting, 'unknown');
}

/** The epoch of a Latchkey; `plain`: the upstream is none; `unknown`: no answer has shown what it is. */
export function storedEpoch({ settings }: Settings): string {
  return settings.get(epochSetting) ?? 'unknown';
}

export function storeEpoch({ settings }: Transaction, epoch: string): void {
  settings.set(epochSetting, epoch);
}

/** The epoch of the upstream; null: the upstream is no Latchkey, or has not answered yet. */
export function upstreamEpoch(reader: Settings): string | null {
  const epoch = storedEpoch(reader);
  return epoch === 'unknown' || epoch === 'plain' ? null : epoch;
}

/** Whether the upstream is a Latchkey. False while nothing is known about the upstream. */
export function isLatchkey(reader: Settings): boolean {
  return upstreamEpoch(reader) !== null;
}

/** Whether the upstream has turned out to be no Latchkey. */
export function isPlain(reader: Settings): boolean {
  return storedEpoch(reader) === 'plain';
}

/** Whether an answer has shown what the upstream is. */
export function isUpstreamKnown(reader: Settings): boolean {
  return storedEpoch(reader) !== 'unknown';
}

/** Counts the histories of upstreams that this store has seen; 0 if it has seen none. */
export function epochNumber({ settings }: Settings): number {
  return Number(settings.get(epochNumberSetting) ?? 0);
}

/** Revisions of the former history mean nothing any more. */
export function beginHistory(transaction: Transaction): void {
  transaction.settings.set(epochNumberSetting, String(epochNumber(transaction) + 1));
  transaction.operations.clearSeenRevisions();
}

/** The revision of a license in the present history of the upstream; null: it is not known. */
export function knownRevision(reader: Reader, snapshot: LicenseSnapshot | null): number | null {
  if (snapshot === null || !isLatchkey(reader) || snapshot.epoch !== epochNumber(reader)) return null;
  return snapshot.license.revision ?? null;
}

/** The revision that the caller of an enable has seen; 0: the agent has read the license in a former history only. */
export function revisionSeen(reader: Reader, snapshot: LicenseSnapshot): number | null {
  const { epoch = 0 } = snapshot;
  const isFormer = epoch > 0 && epoch !== epochNumber(reader);
  return isFormer ? 0 : knownRevision(reader, snapshot);
}

const latchkeyPrefix = 'latchkey ';

/** The upstream that operations are sent to: its store if it is a Latchkey, otherwise its base URL. */
export function boundUpstream(reader: Settings): string {
  const epoch = upstreamEpoch(reader);
  // A restored store keeps its name, and so does a store at another address.
  return epoch === null ? (upstreamAddress(reader) ?? '') : latchkeyPrefix + storeOf(epoch);
}

/** Whether an operation was sent under its id. */
export function isKeyed({ upstream }: Pick<Operation, 'upstream'>): boolean {
  return upstream?.startsWith(latchkeyPrefix) === true;
}

/** How an operation is sent to a Latchkey; to another upstream it is sent without its id. */
export function keyedAs(
  reader: Settings,
  operation: Pick<Operation, 'id' | 'createdAt' | 'seenRevision' | 'progress' | 'upstream'>,
): { keyed?: Keyed } {
  if (!isKeyed(operation)) return {};
  const { id, createdAt, seenRevision } = operation;
  const isRepeat = isUnanswered(operation);
  return { keyed: { id, createdAt, epoch: upstreamEpoch(reader), isRepeat, seenRevision } };
}
