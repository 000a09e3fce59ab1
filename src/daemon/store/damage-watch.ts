import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import type { Log } from '../../service/ports.ts';
import { restoreAdvice } from '../../store/sqlite/faults.ts';
import { isGone } from '../../store/sqlite/files/database-file.ts';
import { startWorker } from '../threads/start-worker.ts';

/** Looks whether the store on this machine is whole, and where it was opened. */
export class DamageWatch {
  readonly #databasePath: string;
  readonly #log: Log;
  readonly #onDamage: (damage: string) => boolean;

  /** `onDamage`: puts the store out of use; false where that is no news. */
  constructor(databasePath: string, log: Log, onDamage: (damage: string) => boolean) {
    this.#databasePath = databasePath;
    this.#log = log;
    this.#onDamage = onDamage;
  }

  /** Begins to look through the whole store; disposing of it ends that. */
  lookThrough(): AsyncDisposable {
    const check = new IntegrityCheck(this.#databasePath);
    void this.#hear(check);
    return check;
  }

  async #hear(check: IntegrityCheck): Promise<void> {
    try {
      const damage = await check.damage;
      if (damage !== null) this.#tell(damage, restoreAdvice);
    } catch (error) {
      const text = 'the store could not be checked for damage: the next start checks it again';
      this.#log.warn({ error: String(error) }, text);
    }
  }

  /** What is written to a database that was moved or removed is lost to the next start. */
  lookForFile(): void {
    if (!isGone(this.#databasePath)) return;
    this.#tell('its directory was moved or removed', `restore the directory, or ${restoreAdvice}`);
  }

  #tell(damage: string, remedy: string): void {
    if (!this.#onDamage(damage)) return;
    const hint = `${this.#databasePath}: stop this process, ${remedy}, and start again`;
    this.#log.error({ error: damage, hint }, 'the store is damaged: changes are refused');
  }
}

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
