import type { App } from '../http/app.ts';
import { dialects } from '../http/dialects/all.ts';
import { Rates } from '../http/entry/request-rates.ts';
import type { Status } from '../service/status.ts';
import { logOf } from './log/part.ts';
import type { Metrics } from './metrics.ts';
import type { Role, RoleParts } from './role/role.ts';
import { sha256 } from './system/random.ts';
import type { WriterThread } from './threads/writer-thread.ts';
import { version } from './version.ts';

/** What the routes depend on, of a process that runs. */
export type AppParts = Pick<RoleParts, 'instance' | 'current' | 'reader' | 'clock' | 'log'> &
  Pick<App, 'backup' | 'status' | 'readiness' | 'liveness'> & {
    writer: WriterThread;
    metrics: Metrics;
    role: Role;
    /** The status for the metrics, whose counts of the records may be some seconds old. */
    measuredStatus(): Promise<Status>;
  };

/** Gives the routes what they depend on. */
export function appOf(parts: AppParts): App {
  const { instance, current, reader, writer, clock, log, metrics } = parts;
  const { licensing, couponing, checkout, credentials, productName, sync } = parts.role;
  const { role } = current.configuration;
  return {
    role,
    version,
    instance,
    dialect: dialects[current.configuration.listen.dialect],
    licensing: metrics.countVerdicts(licensing),
    couponing,
    checkout,
    credentials,
    rates: new Rates(
      () => current.configuration.limits,
      () => clock.steady(),
    ),
    configuredProducts: () => (role === 'agent' ? current.productKeys() : null),
    productName,
    reader,
    operations: role === 'agent' ? reader.operations : null,
    writer,
    sync,
    backup: (signal) => parts.backup(signal),
    digest: sha256,
    log: logOf(log, 'http'),
    inFlight: new Set(),
    now: () => clock.now(),
    status: () => parts.status(),
    readiness: () => parts.readiness(),
    liveness: () => parts.liveness(),
    metrics: {
      isOpen: () => current.configuration.metrics.open,
      expose: async () => await metrics.expose(await parts.measuredStatus(), writer.isFull),
      countUnrouted: (status) => metrics.countUnrouted(status),
    },
  };
}
