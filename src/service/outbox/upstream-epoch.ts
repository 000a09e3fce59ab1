import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { storeOf } from '../../domain/latchkey.ts';
import { isUnanswered, type Operation } from '../../domain/outbox/operation.ts';
import type { Keyed } from '../ports.ts';
import type { Reader } from '../tables.ts';

/*
 * A Latchkey names the history of its store in each answer to an agent (`Latchkey-Epoch`). From the first such answer on,
 * each change is sent under the id of its operation. A gateway that removes the header later changes nothing.
 * (src/sync/README.md, Between Latchkeys)
 */

type Settings = Pick<Reader, 'settings'>;

export const epochSetting = 'upstream_epoch';
export const epochNumberSetting = 'upstream_epoch_number';
/** The values of the setting that name no history. */
export const unknownUpstream = 'unknown';
export const plainUpstreamName = 'plain';

/** The epoch of the upstream; null: the upstream is no Latchkey, or has not answered yet. */
export function upstreamEpoch({ settings }: Settings): string | null {
  const epoch = settings.get(epochSetting) ?? unknownUpstream;
  return epoch === unknownUpstream || epoch === plainUpstreamName ? null : epoch;
}

/** Whether the upstream is a Latchkey. False while nothing is known about the upstream. */
export function isLatchkey(reader: Settings): boolean {
  return upstreamEpoch(reader) !== null;
}

/** Whether an answer has shown what the upstream is. */
export function isUpstreamKnown({ settings }: Settings): boolean {
  return (settings.get(epochSetting) ?? unknownUpstream) !== unknownUpstream;
}

/** Counts the histories of upstreams that this store has seen; 0 if it has seen none. */
export function epochNumber({ settings }: Settings): number {
  return Number(settings.get(epochNumberSetting) ?? 0);
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

/** The name of a Latchkey as an upstream: a restored store keeps it, and so does a store at another address. */
export function latchkeyName(epoch: string): string {
  return latchkeyPrefix + storeOf(epoch);
}

/** Whether an operation was sent under its id. */
export function isKeyed({ upstream }: Pick<Operation, 'upstream'>): boolean {
  return upstream?.startsWith(latchkeyPrefix) === true;
}

export const resumeSetting = 'resume';

/** Whether what was delivered to a restored upstream still returns to the outbox: nothing is sent meanwhile. */
export function isResuming({ settings }: Settings): boolean {
  return (settings.get(resumeSetting) ?? '') !== '';
}

/** How an operation is sent to a Latchkey; to another upstream it is sent without its id. */
export function keyedAs(
  reader: Pick<Reader, 'settings'>,
  operation: Pick<Operation, 'id' | 'createdAt' | 'seenRevision' | 'progress' | 'upstream'>,
): { keyed?: Keyed } {
  if (!isKeyed(operation)) return {};
  const { id, createdAt, seenRevision } = operation;
  const isRepeat = isUnanswered(operation);
  return { keyed: { id, createdAt, epoch: upstreamEpoch(reader), isRepeat, seenRevision } };
}

/** The setting with the base URL of the upstream. */
export const boundTo = 'upstream';

/** The upstream that operations are sent to: its store if it is a Latchkey, otherwise its base URL. */
export function boundUpstream(reader: Reader): string {
  const epoch = upstreamEpoch(reader);
  return epoch === null ? (reader.settings.get(boundTo) ?? '') : latchkeyName(epoch);
}
