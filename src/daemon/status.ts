import { version } from '../config/version.ts';
import type { RecordCounts, Status, StorageState, UpstreamStatus } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import { formatProxy } from '../upstream/proxy.ts';
import type { PersistentClock } from './system/clock.ts';
import type { LiveConfiguration } from './live-configuration.ts';
import type { Metrics } from './metrics.ts';
import type { Role } from './role/role.ts';
import type { LocalStore } from './store/opened-store.ts';
import { proxyTo } from './upstream-settings.ts';
import { lastSuccessAt } from '../service/outbox/sync-marks.ts';

export type StatusParts = {
  instance: string;
  startedAt: number;
  listeners: Status['listeners'];
  current: LiveConfiguration;
  /** Counts the licenses of an authority. */
  licenses: () => Promise<RecordCounts | null>;
  local: LocalStore | null;
  clock: PersistentClock;
  role: Role;
  metrics: Pick<Metrics, 'totals'>;
  storage: StorageState;
};

/** The status of this process now. */
export async function statusOf(parts: StatusParts): Promise<Status> {
  const { instance, startedAt, listeners, current, clock, metrics } = parts;
  const agent = agentOf(parts);
  return {
    role: current.configuration.role,
    version,
    instance,
    uptimeMs: clock.elapsed() - startedAt,
    listeners,
    upstream: agent === null ? null : upstreamStatus(agent, current),
    outbox: agent === null ? null : outboxStatus(agent, clock),
    preload: agent === null ? null : agent.reader.preload.progress(),
    storage: parts.storage,
    records: agent === null ? await parts.licenses() : recordCounts(agent, parts),
    clock: { now: clock.now(), ...clock.status() },
    totals: metrics.totals(),
  };
}

/** The parts of an agent. */
type Agent = { upstream: NonNullable<Role['upstream']>; reader: Reader };

function agentOf({ role: { upstream }, local }: StatusParts): Agent | null {
  return upstream === null || local === null ? null : { upstream, reader: local.reader };
}

function outboxStatus({ reader: { operations } }: Agent, clock: PersistentClock): Status['outbox'] {
  const oldestAt = operations.oldestAt();
  return {
    depth: operations.depth(),
    held: operations.heldCount(),
    oldestAgeMs: oldestAt === null ? null : Math.max(0, clock.now() - oldestAt),
  };
}

/** The last success may be from before this start. */
function upstreamStatus(
  { upstream, reader }: Agent,
  { upstream: settings, products }: LiveConfiguration,
): UpstreamStatus {
  const status = upstream.status();
  const proxy = proxyTo(settings);
  return {
    ...status,
    lastSuccessAt: status.lastSuccessAt ?? lastSuccessAt(reader),
    pausedProducts: status.pausedProducts.map((id) => products.keyOf(id)),
    proxy: proxy === null ? null : formatProxy(proxy),
  };
}

function recordCounts(
  { reader }: Agent,
  { clock, current }: Pick<StatusParts, 'clock' | 'current'>,
): RecordCounts {
  const { freshMs, staleMs, graceMs } = current.configuration.freshness;
  const now = clock.now();
  return reader.snapshots.counts({
    fresh: now - freshMs,
    stale: now - staleMs,
    grace: now - graceMs,
  });
}
