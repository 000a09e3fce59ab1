import { version } from '../config/version.ts';
import { lastSuccessAt } from '../service/outbox/control/last-success.ts';
import type { RecordCounts, Status, UpstreamStatus } from '../service/status.ts';
import type { AuthorityReader, Reader } from '../service/tables.ts';
import type { KeptClock } from './system/clock.ts';
import type { LiveConfiguration } from './live-configuration.ts';
import type { Metrics } from './metrics.ts';
import type { Role } from './role/role.ts';

export type StatusParts = {
  instance: string;
  startedAt: number;
  listeners: Status['listeners'];
  current: LiveConfiguration;
  reader: Reader;
  clock: KeptClock;
  role: Role;
  metrics: Pick<Metrics, 'totals'>;
  writer: { readonly isFull: boolean };
  isDamaged: boolean;
};

/** How this process stands at this moment. */
export async function statusOf(parts: StatusParts): Promise<Status> {
  const { instance, startedAt, listeners, current, reader, clock, role, metrics } = parts;
  const records = await recordCounts(parts);
  const oldestAt = reader.operations.oldestAt();
  return {
    role: current.configuration.role,
    version,
    instance,
    uptimeMs: clock.steady() - startedAt,
    listeners,
    upstream: upstreamStatus(parts),
    outbox:
      role.upstream === null
        ? null
        : {
            depth: reader.operations.depth(),
            held: reader.operations.heldCount(),
            oldestAgeMs: oldestAt === null ? null : Math.max(0, clock.now() - oldestAt),
          },
    preload: role.upstream === null ? null : reader.preload.progress(),
    storage: storageOf(parts),
    records,
    clock: { now: clock.now(), ...clock.status() },
    totals: metrics.totals(),
  };
}

function storageOf({ writer, isDamaged }: StatusParts): Status['storage'] {
  if (isDamaged) return 'damaged';
  return writer.isFull ? 'full' : 'ok';
}

/** What this process has not seen of the upstream yet, an earlier one may have. */
function upstreamStatus({ role, reader }: StatusParts): UpstreamStatus | null {
  if (role.upstream === null) return null;
  const status = role.upstream.status();
  return { ...status, lastSuccessAt: status.lastSuccessAt ?? lastSuccessAt(reader) };
}

async function recordCounts({
  role,
  reader,
  clock,
  current,
}: Pick<StatusParts, 'role' | 'reader' | 'clock' | 'current'>): Promise<RecordCounts> {
  if (role.upstream === null) return await licenseCounts(reader);
  const { freshMs, staleMs, graceMs } = current.configuration.freshness;
  const now = clock.now();
  return reader.observations.census({ fresh: now - freshMs, stale: now - staleMs, grace: now - graceMs });
}

/** An authority's own records are always fresh. */
async function licenseCounts({ licenses }: AuthorityReader): Promise<RecordCounts> {
  const fresh = await licenses.count({ enabled: true });
  return { fresh, stale: 0, grace: 0, expired: 0, disabled: await licenses.count({ enabled: false }) };
}
