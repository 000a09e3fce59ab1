/** What programs import from `latchkey`. */
export { startDaemon, type Daemon, type DaemonOptions } from './daemon/embedding.ts';
export { loadConfiguration, parseConfiguration, type ConfigurationResult } from './config/load.ts';
export { type Configuration } from './config/configuration.ts';
// They add their sections to `Configuration`.
export type { ConsoleSettings } from './features/console/config/console.ts';
export type { LeaseSettings } from './features/leases/config/leases.ts';
export type { WebhookSettings } from './features/webhooks/config/webhooks.ts';
export { formatConfigError, type ConfigError } from './config/errors.ts';
export { StorageError, type Log } from './service/ports.ts';
export { ListenError } from './http/listen.ts';
export {
  DatabaseRefused,
  StateDirectoryHeld,
  StateDirectoryRefused,
  StateDirectoryUnusable,
} from './store/sqlite/faults.ts';
/** `startDaemon` rejects with one of these if it cannot use the database of `store.postgres`. */
export { PostgresAway, PostgresRefused } from './features/postgres/store/faults.ts';
// It adds its section to `Configuration`.
export type { StoreSettings } from './features/postgres/config/store.ts';
export { type Status } from './service/status.ts';
