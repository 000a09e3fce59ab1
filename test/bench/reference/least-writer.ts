/**
 * About the least that a program of two threads can do to keep uses and operations as durably as Latchkey: what
 * Latchkey takes beyond it is for all else that it does.
 */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

export type LeastOptions = {
  /** A new database file. */
  readonly file: string;
  /** How many license keys there are, from number 0. */
  readonly licenses: number;
  /** Whether each use becomes an operation, as on an agent. */
  readonly hasOutbox: boolean;
};

export type LeastCommand =
  | { readonly name: 'use' | 'send'; readonly licenseKey: string }
  | { readonly name: 'answer'; readonly seq: number; readonly uses: number; readonly licenseKey: string };

/** So many are posted before the turn of the event loop ends, as Latchkey does. */
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

  /** Resolves when it is committed. */
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
