import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import type { Log } from '../../service/ports.ts';
import { restoreAdvice } from '../../store/sqlite/faults.ts';
import { isGone } from '../../store/sqlite/files/database-file.ts';
import type { FileTask } from '../threads/file-worker.ts';
import { errorOf, startWorker, type OutcomeMessage } from '../threads/worker.ts';

/** Checks a store on this machine for damage, and that its file exists. */
export class DamageWatch {
  readonly #databasePath: string;
  readonly #log: Log;
  readonly #onDamage: (damage: string) => boolean;

  /** `onDamage` ends the use of the store; returns false if that happened before. */
  constructor(databasePath: string, log: Log, onDamage: (damage: string) => boolean) {
    this.#databasePath = databasePath;
    this.#log = log;
    this.#onDamage = onDamage;
  }

  /** Starts to check the whole store. Disposing of the result ends the check. */
  checkStore(): AsyncDisposable {
    const check = new IntegrityCheck(this.#databasePath);
    void this.#follow(check);
    return check;
  }

  async #follow(check: IntegrityCheck): Promise<void> {
    try {
      const damage = await check.damage;
      if (damage !== null) this.#report(damage, restoreAdvice);
    } catch (error) {
      const text = 'the store could not be checked for damage: the next start checks it again';
      this.#log.warn({ error: String(error) }, text);
    }
  }

  /** Writes to a moved or removed database would be lost at the next start. */
  checkFile(): void {
    if (!isGone(this.#databasePath)) return;
    this.#report('its directory was moved or removed', `restore the directory, or ${restoreAdvice}`);
  }

  #report(damage: string, remedy: string): void {
    if (!this.#onDamage(damage)) return;
    const hint = `${this.#databasePath}: stop this process, ${remedy}, and start again`;
    this.#log.error({ error: damage, hint }, 'the store is damaged: changes are refused');
  }
}

/** Checks the whole store in its own thread, because the check takes longer the more is stored. */
class IntegrityCheck implements AsyncDisposable {
  readonly #worker: Worker;
  /** The damage; null: none, or the check was ended. Rejects if the store cannot be checked. */
  readonly damage: Promise<string | null>;

  constructor(databasePath: string) {
    this.#worker = startWorker('file', { databasePath } satisfies FileTask);
    this.damage = Promise.race([this.#result(), once(this.#worker, 'exit').then(() => null)]);
  }

  async #result(): Promise<string | null> {
    const [message] = (await once(this.#worker, 'message')) as [OutcomeMessage];
    if ('result' in message) return message.result as string | null;
    throw errorOf(message);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
