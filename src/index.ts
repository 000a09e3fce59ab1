export { type Daemon } from './daemon/daemon.ts';
export { startDaemon, type DaemonOptions } from './daemon/start/start.ts';
export { loadConfiguration, parseConfiguration, type ConfigurationResult } from './config/load.ts';
export { type Configuration } from './config/configuration.ts';
export { formatFault, type Fault } from './config/fault/fault.ts';
export { StorageError, type Log } from './service/ports.ts';
export { type Status } from './service/status.ts';
