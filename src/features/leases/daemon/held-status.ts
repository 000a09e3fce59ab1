import { heldVerdict, pendingUses } from '../domain/held-lease.ts';
import type { Holder } from '../holder.ts';
import type { Clock } from '../../../service/ports.ts';
import type { HolderStatus, RecordCounts } from '../../../service/status.ts';
import type { Reader } from '../../../service/tables.ts';

type StatusParts = {
  reader: Pick<Reader, 'heldLeases'>;
  clock: Pick<Clock, 'now'>;
  holder: Holder;
  issuer: string;
  /** The thumbprint of the key of this device. */
  device: string;
};

/** The leases of this device, for `/statusz` and the metrics. */
export function heldStatus({ reader, clock, holder, issuer, device }: StatusParts): {
  leases: HolderStatus;
  records: RecordCounts;
} {
  const now = clock.now();
  const records = { fresh: 0, stale: 0, grace: 0, expired: 0, disabled: 0 };
  let nextEnd: number | null = null;
  let pending = 0;
  for (const held of reader.heldLeases.all()) {
    const found = heldVerdict(held, now);
    pending += pendingUses(held);
    if (found.verdict === 'expired') records.expired += 1;
    if (found.verdict !== 'answer') continue;
    if (held.document?.kind !== 'lease') {
      records.disabled += 1;
      continue;
    }
    records[found.freshness] += 1;
    nextEnd = Math.min(nextEnd ?? Infinity, held.document.expiresAt);
  }
  return { records, leases: { issuer, device, ...holder.renewals.contact(), nextEnd, pendingUses: pending } };
}
