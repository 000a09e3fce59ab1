/** A daemon within another program (`latchkey`). These declarations show no type of Fastify. */
import type { Configuration } from '../config/configuration.ts';
import type { Log } from '../service/ports.ts';
import type { Status } from '../service/status.ts';
import type { Reloaded } from './live-configuration.ts';
import { startDaemon as start } from './start.ts';
import type { TimeSource } from './system/clock.ts';

/** A running daemon: store, listeners and, on an agent, the loops that send changes to the upstream. */
export interface Daemon {
  /** `http://127.0.0.1:8787` or `https://…`, and the paths of the Unix sockets. */
  readonly addresses: {
    tcp: string | null;
    otherTcp: readonly string[];
    socket: string | null;
    sockets: readonly string[];
  };
  /** Rejects when the storage fails, or another part that must run; pending until then. */
  readonly failed: Promise<never>;
  status(): Promise<Status>;
  /** Applies another configuration. Returns the settings that changed, and the settings that need a restart. */
  reload(configuration: Configuration): Reloaded;
  /** Goes on answering for `listen.drain_delay`, answers the requests in flight, then closes everything. */
  stop(): Promise<void>;
  /** Ends the wait of `listen.drain_delay`; false if there is no wait. */
  skipDrainDelay(): boolean;
}

export type DaemonOptions = {
  log: Log;
  /** Default: the clocks of this machine. */
  time?: TimeSource;
  /** Ends a start that waits for its database. */
  signal?: AbortSignal;
  /** Called with the path of the copy that is kept of a store before its migration. */
  onMigration?: (copy: string) => void;
};

/**
 * Starts a daemon. If the start fails, rejects with `StateDirectoryHeld`, `StateDirectoryUnusable`,
 * `StateDirectoryRefused`, `DatabaseRefused` or `ListenError`, or if it has its records elsewhere with an error of its
 * database, and leaves nothing open. The upstream need not be reachable.
 */
export async function startDaemon(configuration: Configuration, options: DaemonOptions): Promise<Daemon> {
  return await start(configuration, options);
}
