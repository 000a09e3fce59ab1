import { findSocket } from '../../config/defaults.ts';
import type { Tree } from '../../config/file/tree.ts';
import type { AdvancingTime } from '../../daemon/system/clock.ts';
import type { Log } from '../../service/ports.ts';
import { RestartableDaemon, startServer } from './daemon.ts';

type DaemonParts = {
  directory: string;
  log: Log;
  time: AdvancingTime;
  /** Default: a free port. */
  port?: number;
};

/** An agent or a holder of a sandbox. It can be stopped and started again. */
export abstract class SandboxDaemon {
  readonly #parts: DaemonParts;
  readonly #daemon: RestartableDaemon;
  /** The files that its configuration names. */
  readonly #files: readonly string[];

  constructor(parts: DaemonParts, files: readonly string[] = []) {
    this.#parts = parts;
    this.#daemon = new RestartableDaemon(parts.port ?? 0);
    this.#files = files;
  }

  get stateDir(): string {
    return this.#parts.directory;
  }

  /** The URL that software calls. It stays the same after a stop. */
  get url(): string {
    return this.#daemon.url;
  }

  /** The path of the Unix socket, or the name of the named pipe on Windows. */
  get socket(): string {
    return findSocket({ environment: {}, home: '', platform: process.platform }, this.stateDir);
  }

  async stop(): Promise<void> {
    await this.#daemon.stop();
  }

  async start(): Promise<void> {
    const parts = { ...this.#parts, files: this.#files };
    await this.#daemon.start(async (tcp) => await startServer(this.configurationAt(tcp), parts));
  }

  protected abstract configurationAt(tcp: string): Tree;

  protected get isRunning(): boolean {
    return this.#daemon.running !== null;
  }

  /** How many changes the store does not have, or may not have. */
  async outboxDepth(): Promise<{ pending: number; in_flight: number; uncertain: number; held: number }> {
    const outbox = (await this.#daemon.running?.status())?.outbox;
    const { pending = 0, in_flight = 0, uncertain = 0 } = outbox?.depth ?? {};
    return { pending, in_flight, uncertain, held: outbox?.held ?? 0 };
  }
}
