import { type Configuration } from '../config/configuration.ts';
import { engineIn } from '../config/engine.ts';
import type { Log } from '../service/ports.ts';
import type { OnMigration } from '../store/sqlite/files/migrations.ts';
import { openStore } from '../store/sqlite/files/open.ts';
import type { ComposeOptions } from './compose.ts';
import type { Daemon } from './daemon.ts';
import { logOf } from './log.ts';
import { explainFailedStart, openLocalStore } from './store/local-store.ts';
import { secureStateDirectory } from './store/windows-directory.ts';
import type { TimeSource } from './system/clock.ts';

export type DaemonOptions = ComposeOptions & {
  log: Log;
  /** Default: the clocks of this machine. */
  time?: TimeSource;
  /** Ends a start that waits for its database. */
  signal?: AbortSignal;
  onMigration?: OnMigration;
};

/**
 * Starts a daemon. Rejects with `StateDirectoryHeld`, `StateDirectoryUnusable`, `StateDirectoryRefused`,
 * `DatabaseRefused`, `EngineError` or `ListenError`, and then leaves nothing open. The upstream need not be reachable.
 */
export async function startDaemon(configuration: Configuration, options: DaemonOptions): Promise<Daemon> {
  const { stateDir: directory } = configuration;
  const { onMigration, log } = options;
  secureStateDirectory(directory, (error) =>
    logOf(log, 'daemon').warn({ error }, 'who can access the state directory was not checked'),
  );
  await using resources = new AsyncDisposableStack();
  const engine = engineIn(configuration);
  if (engine !== null) {
    const opened = await engine.open(configuration, options, resources);
    const { compose } = await import('./compose.ts');
    return await compose(opened, options, resources);
  }
  const { databasePath } = resources.use(openStore({ directory, onMigration }));
  try {
    const opened = await openLocalStore(databasePath, configuration, options, resources);
    const { compose } = await import('./compose.ts');
    return await compose(opened, options, resources);
  } catch (error) {
    throw explainFailedStart(error, databasePath);
  }
}
