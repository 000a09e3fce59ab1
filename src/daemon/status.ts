import type { RecordCounts, Status } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import type { KeptClock } from './system/clock.ts';
import type { LiveConfiguration } from './live-configuration.ts';
import type { Addresses } from './listeners.ts';
import type { Role } from './role/role.ts';
import { version } from './version.ts';

export type StatusParts = {
  instance: string;
  startedAt: number;
  addresses: Addresses;
  current: LiveConfiguration;
  reader: Reader;
  clock: KeptClock;
  role: Role;
  /** Counted anew when it is not given: that looks at every record. */
  records?: RecordCounts;
};

/** How this process stands at this moment. */
export function statusOf(parts: StatusParts): Status {
  const { instance, startedAt, addresses, current, reader, clock, role } = parts;
  const oldestAt = reader.operations.oldestAt();
  return {
    role: current.configuration.role,
    version,
    instance,
    uptimeMs: clock.steady() - startedAt,
    listeners: addresses,
    upstream: role.upstream?.status() ?? null,
    outbox:
      role.upstream === null
        ? null
        : {
            depth: reader.operations.depth(),
            held: reader.operations.heldCount(),
            oldestAgeMs: oldestAt === null ? null : Math.max(0, clock.now() - oldestAt),
          },
    records: parts.records ?? recordCounts(parts),
    clock: clock.status(),
  };
}

/** An authority's own records are always fresh. */
export function recordCounts({
  role,
  reader,
  clock,
  current,
}: Pick<StatusParts, 'role' | 'reader' | 'clock' | 'current'>): RecordCounts {
  if (role.upstream === null) {
    const fresh = reader.licenses.count({ enabled: true });
    return { fresh, stale: 0, grace: 0, expired: 0, disabled: reader.licenses.count({ enabled: false }) };
  }
  const { freshMs, staleMs, graceMs } = current.configuration.freshness;
  const now = clock.now();
  return reader.observations.census({ fresh: now - freshMs, stale: now - staleMs, grace: now - graceMs });
}
