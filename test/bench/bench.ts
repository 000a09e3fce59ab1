import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alternate } from './figure.ts';
import { load, type Measured } from './load/load.ts';
import type { Job } from './load/job.ts';
import type { Argv, Started } from './process.ts';
import { isFresh, programs, root, type Form } from './program.ts';

/** The length and number of the measurements. */
export type Effort = {
  readonly rounds: number;
  /** The number of rounds for values that change little or take long. */
  readonly fewRounds: number;
  /** The length of one round of one contestant. */
  readonly seconds: number;
  /** The length of the whole soak. */
  readonly soakSeconds: number;
  /** The factor for sizes of stores and numbers of requests. */
  readonly scale: number;
};

export const fullEffort: Effort = { rounds: 5, fewRounds: 3, seconds: 1, soakSeconds: 600, scale: 1 };
/** Only shows that everything works: the figures mean nothing. */
export const quickEffort: Effort = { rounds: 1, fewRounds: 1, seconds: 0.05, soakSeconds: 0.5, scale: 0.002 };

/** The tools of every theme: the program, a directory, and the started servers. */
export class Bench implements AsyncDisposable {
  readonly effort: Effort;
  readonly form: Form;
  readonly program: Argv;
  /** The directory for stores, on the disk of this repository: /tmp may be in memory. */
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
  /** The directories of the stores, by their contents. */
  readonly stores: Map<string, Promise<string>> = new Map();
  readonly #sockets: string = mkdtempSync(join(tmpdir(), 'latchkey-bench-'));
  readonly #servers: Started[] = [];
  #socketCount = 0;

  constructor(form: Form, effort: Effort) {
    this.form = form;
    this.effort = effort;
    this.program = programs[form];
    mkdirSync(join(root, 'dist/bench'), { recursive: true });
    this.directory = mkdtempSync(join(root, 'dist/bench/run-'));
    // Also runs after an interrupt.
    process.on('exit', () => {
      for (const path of [this.directory, this.#sockets]) rmSync(path, { recursive: true, force: true });
    });
    const { PATH } = process.env;
    this.environment = { PATH, HOME: this.directory };
  }

  /** The number for a full run, scaled for a quick run, at least 100. */
  count(full: number): number {
    return Math.max(100, Math.round(full * this.effort.scale));
  }

  /** Whether this run only shows that everything works. */
  get isQuick(): boolean {
    return this.effort === quickEffort;
  }

  /** The chosen form. With the build also the executable, if it is made of the same sources. */
  shippedForms(): readonly Form[] {
    return this.form === 'build' && isFresh('executable') ? ['build', 'executable'] : [this.form];
  }

  /** A new path, short enough for a Unix socket. */
  socketPath(): string {
    this.#socketCount += 1;
    return join(this.#sockets, `${this.#socketCount}.sock`);
  }

  /** Ends a server together with its theme. */
  keep<Kept extends Started>(server: Kept): Kept {
    this.#servers.push(server);
    return server;
  }

  async stopServers(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => server.stop()));
  }

  /** Warms up each contestant, then runs all in turn, once per round. */
  async alternate<Name extends string, Value>(
    contestants: Readonly<Record<Name, () => Promise<Value>>>,
  ): Promise<Record<Name, Value[]>> {
    if (!this.isQuick) await alternate(1, contestants);
    return await alternate(this.effort.rounds, contestants);
  }

  /** Puts a server under load for a round. */
  async load(
    server: Pick<Started, 'pid'>,
    job: Omit<Job, 'ending' | 'rate'> & Partial<Job>,
  ): Promise<Measured> {
    return await load(server.pid, { ending: { seconds: this.effort.seconds }, rate: null, ...job });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopServers();
  }
}
