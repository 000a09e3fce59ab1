import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { startWorker } from './start-worker.ts';

/** What is wrong with a store; null: nothing. */
export type DamageMessage = { damage: string | null };

/** A look through the whole store, which takes the longer the more it holds, in a thread of its own. */
export class IntegrityCheck implements AsyncDisposable {
  readonly #worker: Worker;
  /** What is wrong with the store; null: nothing, or the look was ended. Rejects where it could not be looked at. */
  readonly damage: Promise<string | null>;

  constructor(databasePath: string) {
    this.#worker = startWorker('integrity', { databasePath });
    const found = once(this.#worker, 'message').then(([message]) => (message as DamageMessage).damage);
    const ended = once(this.#worker, 'exit').then(() => null);
    this.damage = Promise.race([found, ended]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
