import {
  addLocalChange,
  localLicense,
  type LicenseSnapshot,
} from '../../../domain/agent/license-snapshot.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import { recordChange } from '../../../service/history.ts';
import { enqueue, refuseWhenFull } from '../../../service/outbox/queue.ts';
import { isLatchkey } from '../../../service/outbox/upstream-epoch.ts';
import type { Context } from '../../../service/ports.ts';
import type { Transaction } from '../../../service/tables.ts';
import type { UseTotals } from '../domain/lease.ts';
import type { ReportingDevice } from './answer.ts';

type QueueUses = {
  snapshot: LicenseSnapshot;
  growth: UseTotals;
  from: ReportingDevice;
  /** `sync.max_pending`. */
  maxPending: number;
};

/**
 * Records many uses of a license at once, in the order `recorded`, `returned`, and the operations that will deliver them.
 * The history gets one entry for each of the two. A use that a device reports again to a restored store has the same id as
 * before, so a Latchkey counts it once. At a plain upstream it is marked as maybe applied.
 */
export function queueUses(
  transaction: Transaction,
  { snapshot, growth, from, maxPending }: QueueUses,
  context: Context,
): Result<LicenseSnapshot> {
  const { recorded, returned } = growth;
  const room = refuseWhenFull(transaction, maxPending, recorded + returned);
  if (!room.ok) return room;
  const { productId } = snapshot;
  const { licenseKey } = snapshot.license;
  let { local } = snapshot;
  const maybeApplied = from.isContinued && !isLatchkey(transaction);
  for (const [kind, count, last] of [
    ['usage', recorded, from.uses.recorded],
    ['decrease', returned, from.uses.returned],
  ] as const) {
    const before = localLicense({ ...snapshot, local });
    for (let number = last + 1; number <= last + count; number += 1) {
      const id = idOfUse(context, `${from.activationId} ${kind} ${number}`);
      if (transaction.operations.get(id) !== null) continue;
      const change = { id, kind, subject: licenseKey, productId, maybeApplied };
      const operation = enqueue(transaction, change, context);
      local = addLocalChange(local, operation);
    }
    if (count > 0) recordChange(transaction.history, { change: kind, before, after: local }, context);
  }
  if (recorded + returned > 0) transaction.snapshots.setLocal(licenseKey, local);
  return done({ ...snapshot, local });
}

/** The id of a use of a device. It has the latest possible time, because the device does not say when the use was. */
function idOfUse({ digest }: Context, name: string): string {
  const hash = digest(name);
  return `ffffffff-ffff-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}
