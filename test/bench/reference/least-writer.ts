/**
 * The minimal program with two threads that stores uses and operations as durably as Latchkey. The additional time of
 * Latchkey is for its other features.
 */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

export type LeastOptions = {
  /** A new database file. */
  readonly file: string;
  /** The number of license keys, from number 0. */
  readonly licenses: number;
  /** Whether each use becomes an operation, as on an agent. */
  readonly hasOutbox: boolean;
};

export type LeastCommand =
  | { readonly name: 'use' | 'send'; readonly licenseKey: string }
  | { readonly name: 'answer'; readonly seq: number; readonly uses: number; readonly licenseKey: string };

/** The maximum number of messages that are posted in one tick, as in Latchkey. */
const enoughToPost = 16;

export class LeastWriter {
  readonly #worker: Worker;
  readonly #waiting: ((result: number) => void)[] = [];
  readonly #gathered: LeastCommand[] = [];

  constructor(options: LeastOptions) {
    this.#worker = new Worker(join(import.meta.dirname, 'least-writer-worker.ts'), { workerData: options });
    this.#worker.on('message', (results: string) => {
      for (const result of JSON.parse(results) as number[]) this.#waiting.shift()?.(result);
    });
  }

  /** Resolves after the commit. */
  async write(command: LeastCommand): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#waiting.push(resolve);
    if (this.#gathered.length === 0) setImmediate(() => this.#post());
    this.#gathered.push(command);
    if (this.#gathered.length === enoughToPost) this.#post();
    return await promise;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(): void {
    if (this.#gathered.length > 0) this.#worker.postMessage(JSON.stringify(this.#gathered.splice(0)));
  }
}
