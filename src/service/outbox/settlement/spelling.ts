import { noBoot } from '../../../domain/agent/observation.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { maxAliases } from '../../../domain/license-key.ts';
import { putObservation, scheduleHead } from '../lane.ts';

/**
 * Takes note of how the upstream itself spells a license key that it was asked for in another way: its own
 * spelling is the one subject of observation and lanes, every other is an alias. Two spellings with lanes of
 * their own would count one use for the other. Gives `known` when the key was already known under its own
 * spelling, and this read was made beside its lanes. (src/sync/README.md, Queues)
 */
export function adoptSpelling(
  transaction: Transaction,
  asked: string,
  own: string,
  { now, steady }: Context,
): 'same' | 'known' | 'adopted' {
  if (asked === own) return 'same';
  const { observations, operations } = transaction;
  const underOwn = observations.get(own);
  const underAsked = observations.get(asked);
  if (underAsked?.license.licenseKey !== own) observations.addAlias(asked, own, { at: now, max: maxAliases });
  const isKnown = underOwn !== null && underOwn.license.licenseKey === own;
  if (underAsked === null || underAsked.license.licenseKey !== asked) return isKnown ? 'known' : 'adopted';
  // The key was known here under the other spelling alone, or under both.
  operations.moveToSubject(asked, own);
  transaction.history.respell(asked, own);
  observations.remove(asked);
  observations.moveAliases(asked, own);
  // Known under both, its count may contain what was counted under the other.
  const manyWriters = underOwn?.manyWriters === true || underAsked.manyWriters;
  const kept = isKnown
    ? { ...underOwn, boot: noBoot, manyWriters }
    : { ...underAsked, license: { ...underAsked.license, licenseKey: own } };
  putObservation(transaction, kept);
  for (const lane of ['counter', 'state'] as const) {
    const head = operations.head(own, lane);
    if (head !== null && head.progress.state !== 'in_flight')
      scheduleHead(transaction, own, lane, { at: steady });
  }
  return isKnown ? 'known' : 'adopted';
}
