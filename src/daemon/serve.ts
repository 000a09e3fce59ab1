import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import closeWithGrace from 'close-with-grace';
import { formatConfigError } from '../config/errors.ts';
import { homeDirectory, variableBehind } from '../config/defaults.ts';
import type { ConfigurationResult, LoadedConfiguration } from '../config/load.ts';
import type { ProcessControl, ReloadResult } from '../http/app.ts';
import { ListenError } from '../http/listen.ts';
import { EngineError, StorageError, type Log } from '../service/ports.ts';
import {
  DatabaseRefused,
  StateDirectoryHeld,
  StateDirectoryRefused,
  StateDirectoryUnusable,
  storageFault,
} from '../store/sqlite/faults.ts';
import type { Daemon } from './daemon.ts';
import { makeLog, logOf } from './log.ts';
import { startDaemon } from './start.ts';
import {
  endingSignals,
  onEndingSignal,
  skippedSignals,
  collectGarbageSooner,
  limitYoungGeneration,
  leakyNodeSettings,
} from './system/process.ts';

/** The exit code after the storage failed (sysexits EX_IOERR): the supervisor restarts the process. */
const storageFailedExit = 74;
/** The exit code for a wrong configuration (EX_CONFIG): a restart does not help. */
const configurationExit = 78;
/** A little longer than the daemon waits for requests in flight, in ms. */
const closeMs = 15_000;

const noUpstream = 'no upstream is configured: this is a store with its own license keys, not an agent';
const adviceOnRole = 'to make it an agent in front of your store, write upstream.base_url and products';

/**
 * Runs a daemon until a signal, which ends the process with 0 after all requests in flight are answered. Resolves with
 * an exit code only if the start failed (1, or 78 for a wrong configuration) or the storage failed (74).
 */
export async function serve(
  loaded: LoadedConfiguration,
  reload: () => Promise<ConfigurationResult>,
): Promise<number> {
  const { configuration, file, warnings } = loaded;
  limitYoungGeneration();
  const root = await makeLog(configuration.log);
  const log = logOf(root, 'daemon');
  const started = Promise.withResolvers<Daemon>();
  // If the start fails, a rejection may have no other handler.
  started.promise.catch(() => undefined);
  // Before anything else: a signal without a handler ends the process at once.
  const { drainDelayMs } = configuration.listen;
  const ended = new AbortController();
  const endMs = drainDelayMs + closeMs;
  const handlers = handleSignals(started.promise, root, { reload, endMs, ended });
  const { control } = handlers;
  log.info({ file }, 'the configuration was read');
  if (configuration.role === 'authority') log.info({ hint: adviceOnRole }, noUpstream);
  const leaks = leakyNodeSettings();
  if (leaks.length > 0)
    log.warn({ warnings: leaks }, 'the environment lets Node reveal secrets of this process');
  if (warnings.length > 0)
    log.warn({ warnings: warnings.map(formatConfigError) }, 'the configuration is not safe');
  const onMigration = (copy: string): void => {
    log.info({ file: copy }, 'the store is being migrated: this file is a copy from before');
    // The migration blocks the event loop, which would write this line.
    root.flush();
  };
  const options = { log: root, signal: ended.signal, onMigration, control, source: loaded };
  started.resolve(startDaemon(configuration, options));
  let daemon: Daemon;
  try {
    daemon = await started.promise;
  } catch (error) {
    if (error === ended.signal.reason) return 0;
    handlers.uninstall();
    if (!isExpected(error)) throw error;
    process.stderr.write(`latchkey: ${explainFailure(error)}\n`);
    return error instanceof EngineError && error.isConfigured ? configurationExit : 1;
  }
  // The line `ready` is not delayed by the work that follows.
  root.flush();
  void notifyServiceManager('READY', log);
  // Now and not at the end: a killed process would leave no cache for the next start.
  flushCompileCache();
  collectGarbageSooner();
  return await daemon.failed.catch(async (error: unknown) => {
    handlers.uninstall();
    root.fatal(
      { part: 'daemon', err: error },
      'the storage failed: exiting, so that the supervisor restarts the process',
    );
    await daemon.stop().catch(() => undefined);
    return error instanceof StorageError || storageFault(error) !== null ? storageFailedExit : 1;
  });
}

/**
 * Reloads the configuration at SIGHUP, and ends the process within `endMs` at other signals, after the daemon has
 * started. A second signal ends the wait of `listen.drain_delay`. Requests do the same by `control`. On Windows, SIGHUP
 * says that the window was closed: the system ends the process about 10 seconds later.
 */
function handleSignals(
  starting: Promise<Daemon>,
  root: Awaited<ReturnType<typeof makeLog>>,
  {
    reload,
    endMs,
    ended,
  }: { reload: () => Promise<ConfigurationResult>; endMs: number; ended: AbortController },
): { control: ProcessControl; uninstall: () => void } {
  const log = logOf(root, 'daemon');
  let isEnding = false;
  let isWindowClosed = false;
  const reloadInTurn = inTurn((daemon: Daemon) => reloadInto(daemon, root, reload));
  const stopReloading = onReloadSignal(() => {
    void starting.then(reloadInTurn, noop);
  });
  const skip = ['SIGHUP' as const, 'beforeExit' as const, ...skippedSignals];
  const ending = closeWithGrace({ delay: endMs, skip, logger: undefined }, async ({ err }) => {
    if (err !== undefined) root.fatal({ part: 'daemon', err }, 'unexpected error');
    const daemon = await unlessEnded(starting, ended.signal);
    // TimeoutStopSec of the unit does not include listen.drain_delay.
    const more = endMs === closeMs ? [] : [`EXTEND_TIMEOUT_USEC=${endMs * 1_000}`];
    const stopped = daemon?.stop();
    if (err !== undefined || isWindowClosed) daemon?.skipDrainDelay();
    await Promise.all([notifyServiceManager('STOPPING', log, more), stopped]);
    log.info({}, 'stopped');
  });
  let running: Daemon | null = null;
  void starting.then((daemon) => (running = daemon), noop);
  const end = (by: { signal: NodeJS.Signals } | { act: 'stop' }): void => {
    if (isEnding) {
      running?.skipDrainDelay();
      return;
    }
    isEnding = true;
    isWindowClosed = 'signal' in by && by.signal === 'SIGHUP';
    log.info(by, 'draining');
    ended.abort();
    ending.close();
  };
  const stopListening = onEndingSignal(
    (signal) => end({ signal }),
    (signal) => {
      const isSkipped = running?.skipDrainDelay() ?? false;
      if (isSkipped) log.info({ signal }, 'draining without waiting for listen.drain_delay');
      return isSkipped;
    },
  );
  return {
    control: {
      stop: () => (end({ act: 'stop' }), endMs),
      reload: async () => reloadInTurn(await starting),
    },
    uninstall() {
      stopListening();
      ending.uninstall();
      stopReloading();
    },
  };
}

/** Calls `reload` at SIGHUP, except on Windows. Returns a function that removes the handler. */
function onReloadSignal(reload: () => void): () => void {
  if (endingSignals.includes('SIGHUP')) return noop;
  process.on('SIGHUP', reload);
  return () => process.off('SIGHUP', reload);
}

function noop(): void {
  // Nothing is left to do.
}

/** Null if the signal ended a start that waited for its database. */
async function unlessEnded(starting: Promise<Daemon>, signal: AbortSignal): Promise<Daemon | null> {
  try {
    return await starting;
  } catch (error) {
    if (error === signal.reason) return null;
    throw error;
  }
}

function isExpected(error: unknown): error is Error {
  return (
    isTooManyOpenFiles(error) ||
    error instanceof StateDirectoryHeld ||
    error instanceof StateDirectoryRefused ||
    error instanceof StateDirectoryUnusable ||
    error instanceof DatabaseRefused ||
    error instanceof EngineError ||
    error instanceof ListenError ||
    error instanceof StorageError
  );
}

/** Runs each call after the one before: the configuration that was read last is the one that stays. */
function inTurn<Input, Output>(action: (input: Input) => Promise<Output>): (input: Input) => Promise<Output> {
  let last: Promise<unknown> = Promise.resolve();
  return (input) => {
    const done = last.then(() => action(input));
    last = done.catch(noop);
    return done;
  };
}

async function reloadInto(
  daemon: Daemon,
  root: Awaited<ReturnType<typeof makeLog>>,
  reload: () => Promise<ConfigurationResult>,
): Promise<ReloadResult> {
  const log = logOf(root, 'daemon');
  await notifyServiceManager('RELOADING', log);
  const applied = apply(daemon, root, await reload());
  await notifyServiceManager('READY', log);
  return applied;
}

function apply(
  daemon: Daemon,
  root: Awaited<ReturnType<typeof makeLog>>,
  result: ConfigurationResult,
): ReloadResult {
  const log = logOf(root, 'daemon');
  if (result.ok) {
    const { changed, restart } = daemon.reload(result.configuration, result);
    root.level = result.configuration.log.level;
    log.info({ changed }, 'the configuration was reloaded');
    if (restart.length > 0) log.warn({ restart }, 'some changes take effect only after a restart');
    return { ok: true, changed, restart };
  }
  const errors = result.errors.map((error) => ({
    parameter: error.key,
    code: 'invalid',
    detail: formatConfigError(error),
  }));
  log.error(
    { errors: errors.map(({ detail }) => detail) },
    'the configuration is not valid: nothing changed',
  );
  return { ok: false, errors };
}

/** A start needs at least this many more open files. */
const minFreeFiles = 8;

/** Why a start failed, with advice that the error itself does not give. */
export function explainFailure(error: Error): string {
  const advice = adviceOn(error);
  return advice === null ? error.message : `${error.message.replace(/\.$/, '')}; ${advice}`;
}

function adviceOn(error: Error): string | null {
  const { message } = error;
  if (error instanceof ListenError && error.code === 'in_use') {
    return 'use another address: --listen 127.0.0.1:8788, --socket, or listen in the configuration';
  }
  if (/disk is full|\bENOSPC\b|\bEDQUOT\b/.test(message)) {
    return 'free some space there and start again: without free space, it cannot even answer verifies';
  }
  // SQLite does not say why it cannot open a file.
  if (isTooManyOpenFiles(error) || (message.endsWith('unable to open database file') && areFilesUsedUp())) {
    return 'allow more open files: ulimit -n, or LimitNOFILE= in the unit of the service';
  }
  return adviceOnPath(error);
}

/** Names the variable behind a default path that this user cannot use, for instance after `su`. */
function adviceOnPath(error: Error): string | null {
  const { env: environment, platform } = process;
  const machine = { environment, platform, home: homeDirectory() ?? '/' };
  const [path, option] =
    error instanceof ListenError
      ? [error.socket, '--socket']
      : [error instanceof StateDirectoryUnusable ? error.directory : null, '--state-dir'];
  const variable = path === null ? null : variableBehind(path, machine);
  return variable === null
    ? null
    : `the path follows from ${variable}: correct that variable, or choose another path: ${option}`;
}

function areFilesUsedUp(): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < minFreeFiles) opened.push(openSync(process.execPath, 'r'));
    return false;
  } catch (error) {
    return isTooManyOpenFiles(error);
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** Checks the message, because errors of threads and of module loading have no code. */
export function isTooManyOpenFiles(error: unknown): error is Error {
  return error instanceof Error && /\bEMFILE\b|too many open files/.test(error.message);
}

/** Notifies the service manager, if it started this process, of a state (sd_notify(3)). */
export async function notifyServiceManager(
  state: 'READY' | 'RELOADING' | 'STOPPING',
  log: Log,
  more: readonly string[] = [],
): Promise<void> {
  if (process.env['NOTIFY_SOCKET'] === undefined) return;
  try {
    const { spawn } = await import('node:child_process');
    // Node cannot send datagrams over Unix sockets.
    const [code] = await once(spawn('systemd-notify', [`${state}=1`, ...more], { stdio: 'ignore' }), 'exit');
    if (code !== 0) log.warn({ state, code: String(code) }, 'systemd-notify failed');
  } catch (error) {
    log.warn({ state, err: error }, 'systemd-notify cannot be run: the service manager gets no notification');
  }
}
