import type { Log } from '../../service/ports.ts';
import { StorageError } from '../../service/ports.ts';
import type { Database } from '../../store/postgres/database.ts';
import { storageErrorOf } from '../../store/postgres/faults.ts';
import { PostgresAway, PostgresRefused, reasonOf } from '../../store/postgres/refusal.ts';
import type { TimeSource } from '../system/clock.ts';

/** For how long a start waits for its database, in ms: less than systemd gives a start (90 s). */
const patienceMs = 60_000;
/** How often it is tried, in ms. */
const tryMs = 1_000;

/** A start that waits for its database: whoever starts a copy may have started the database beside it. */
export class DatabaseWait {
  readonly #database: Pick<Database, 'place'>;
  readonly #parts: { time: TimeSource; log: Log; signal: AbortSignal };
  readonly #endsAt: number;
  #isTold = false;

  constructor(database: Pick<Database, 'place'>, parts: { time: TimeSource; log: Log; signal: AbortSignal }) {
    this.#database = database;
    this.#parts = parts;
    this.#endsAt = parts.time.read().monotonic + patienceMs;
  }

  /**
   * Does a step of the start as soon as the database can be used. Rejects with `PostgresRefused` at once, with
   * `PostgresAway` when the start has waited long enough, and with the signal's reason.
   */
  async until<Value>(step: () => Promise<Value>): Promise<Value> {
    const { time, signal } = this.#parts;
    for (;;) {
      try {
        return await step();
      } catch (error) {
        const mayPass = !(error instanceof PostgresRefused) && storageErrorOf(error) instanceof StorageError;
        if (!mayPass) throw error;
        if (time.read().monotonic >= this.#endsAt) throw new PostgresAway(this.#database.place, error);
        this.#tell(error);
      }
      await time.sleep(tryMs, signal).catch(() => undefined);
      signal.throwIfAborted();
    }
  }

  #tell(error: unknown): void {
    if (this.#isTold) return;
    this.#isTold = true;
    const fields = { database: this.#database.place, error: reasonOf(error) };
    this.#parts.log.warn(fields, 'the database cannot be used yet: waiting for it');
  }
}
