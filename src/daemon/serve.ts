import closeWithGrace from 'close-with-grace';
import { formatFault } from '../config/fault.ts';
import type { ConfigurationResult, LoadedConfiguration } from '../config/load.ts';
import { ListenError } from '../http/listen.ts';
import { StorageError } from '../service/ports.ts';
import {
  DatabaseRefused,
  StateDirectoryHeld,
  StateDirectoryRefused,
  StateDirectoryUnusable,
} from '../store/faults.ts';
import { startDaemon, type Daemon } from './daemon.ts';
import { makeLog } from './log/log.ts';
import { logOf } from './log/part.ts';
import { tellServiceManager } from './system/service-manager.ts';

/** The exit code after the storage failed: its supervisor starts it anew (sysexits EX_IOERR). */
const storageFailedExit = 74;
/** A little longer than the daemon itself gives what is in flight, in ms. */
const closeMs = 15_000;

/**
 * Runs a daemon until a signal ends it, which ends the process with 0 once everything in flight is
 * answered. Resolves, with the exit code, only when it could not start (1) or its storage failed (74).
 */
export async function serve(
  { configuration, warnings }: LoadedConfiguration,
  reload: () => Promise<ConfigurationResult>,
): Promise<number> {
  const root = makeLog(configuration.log);
  const log = logOf(root, 'daemon');
  if (warnings.length > 0) log.warn({ warnings: warnings.map(formatFault) }, 'the configuration is not safe');
  const starting = startDaemon(configuration, { log: root });
  const rereads = (): void => {
    // Also a signal that comes while it starts, which would end the process if nobody listened.
    void starting.then(
      (started) => reloadInto(started, root, reload),
      () => undefined,
    );
  };
  process.on('SIGHUP', rereads);
  let daemon: Daemon;
  try {
    daemon = await starting;
  } catch (error) {
    process.off('SIGHUP', rereads);
    if (!isExpected(error)) throw error;
    process.stderr.write(`latchkey: ${error.message}\n`);
    return 1;
  }
  const ending = closeWithGrace(
    { delay: closeMs, skip: ['SIGHUP', 'beforeExit'], logger: undefined },
    async ({ signal, err }) => {
      if (err !== undefined) root.fatal({ part: 'daemon', err }, 'something failed that nobody expected');
      else log.info({ signal }, 'draining');
      await Promise.all([tellServiceManager('STOPPING', log), daemon.stop()]);
      log.info({}, 'stopped');
    },
  );
  void tellServiceManager('READY', log);
  return await daemon.failed.catch(async (error: unknown) => {
    ending.uninstall();
    process.off('SIGHUP', rereads);
    root.fatal({ part: 'daemon', err: error }, 'the storage failed: ending for the supervisor to start anew');
    await daemon.stop().catch(() => undefined);
    return error instanceof StorageError ? storageFailedExit : 1;
  });
}

function isExpected(error: unknown): error is Error {
  return (
    error instanceof StateDirectoryHeld ||
    error instanceof StateDirectoryRefused ||
    error instanceof StateDirectoryUnusable ||
    error instanceof DatabaseRefused ||
    error instanceof ListenError ||
    error instanceof StorageError
  );
}

async function reloadInto(
  daemon: Daemon,
  root: ReturnType<typeof makeLog>,
  reload: () => Promise<ConfigurationResult>,
): Promise<void> {
  const log = logOf(root, 'daemon');
  await tellServiceManager('RELOADING', log);
  const result = await reload();
  if (result.ok) {
    const { changed, restart } = daemon.reload(result.configuration);
    root.level = result.configuration.log.level;
    log.info({ changed }, 'the configuration was read again');
    if (restart.length > 0) log.warn({ restart }, 'some changes take effect only after a restart');
  } else {
    log.error({ faults: result.faults.map(formatFault) }, 'the configuration is not valid: nothing changed');
  }
  await tellServiceManager('READY', log);
}
