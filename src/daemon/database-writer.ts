import type { Clock, Log } from '../service/ports.ts';
import type { Database } from '../store/postgres/database.ts';
import type { PostgresWriter } from '../store/postgres/writer.ts';
import type { StoreWriter } from './store-writer.ts';

/** How often the database is looked for, in ms. */
const lookMs = 1_000;

/** Writes to a database, and notices when it is away and when it is back. */
export class DatabaseWriter implements StoreWriter, AsyncDisposable {
  /** A database that fails comes back by itself: nothing ends the process. */
  readonly lost: Promise<never> = new Promise<never>(() => undefined);
  readonly isFull = false;
  readonly isStuck = false;
  readonly write: StoreWriter['write'];
  readonly #ended = new AbortController();
  readonly #watching: Promise<void>;
  #isAway = false;

  constructor(writer: PostgresWriter, database: Database, clock: Clock, log: Log) {
    this.write = (name, command, writeOptions) => writer.write(name, command, writeOptions);
    this.#watching = this.#watch(database, clock, log);
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  refuse(): void {
    // Only a store on this machine is examined for damage.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#watching;
  }

  async #watch(database: Database, clock: Clock, log: Log): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      const error = await database.query('SELECT 1').then(
        () => null,
        (reason: unknown) => reason,
      );
      if (!signal.aborted && (error !== null) !== this.#isAway) this.#tell(error, log);
      await clock.sleep(lookMs, signal).catch(() => undefined);
    }
  }

  #tell(error: unknown, log: Log): void {
    this.#isAway = error !== null;
    if (error === null) log.info({}, 'the database is back');
    else log.error({ err: error }, 'the database is away: requests are refused until it is back');
  }
}
