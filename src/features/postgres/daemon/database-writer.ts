import type { ClockReading } from '../../../domain/clock.ts';
import { pause, type TimeSource } from '../../../daemon/system/clock.ts';
import { StorageError, type Clock, type Log, type WriteOptions } from '../../../service/ports.ts';
import type { CommandOf, CommandResult, UseCaseName } from '../../../service/writer.ts';
import { checkDatabase, type DatabaseCondition, type CheckedCondition } from '../store/condition.ts';
import type { Database } from '../store/database.ts';
import { reasonOf } from '../store/faults.ts';
import { epochMs } from '../store/statements.ts';
import type { PostgresWriter } from '../store/writer.ts';
import type { StoreWriter } from '../../../daemon/store/opened-store.ts';

/** The accepted difference between the clocks of the machine and the database, in ms, including the round trip. */
const toleranceMs = 5_000;

/** The time of a node: of its machine, or if that is wrong, of the database, which all nodes share. */
export class DatabaseTime implements TimeSource {
  readonly #machine: TimeSource;
  /** The last time from the database, and when it arrived here. */
  #databaseReading: ClockReading | null = null;

  constructor(machine: TimeSource) {
    this.#machine = machine;
  }

  read(): ClockReading {
    const { wall, monotonic } = this.#machine.read();
    if (this.#databaseReading === null) return { wall, monotonic };
    const databaseNow = this.#databaseReading.wall + monotonic - this.#databaseReading.monotonic;
    return { wall: Math.abs(wall - databaseNow) > toleranceMs ? databaseNow : wall, monotonic };
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#machine.sleep(ms, signal);
  }

  /** Reads the time of the database. Rejects as a query does. */
  async follow({ query }: Pick<Database, 'query'>): Promise<void> {
    const [row] = await query(`SELECT ${epochMs} AS now`);
    this.#databaseReading = { wall: Number(row?.['now']), monotonic: this.#machine.read().monotonic };
  }
}

/** How often the database is checked, in ms. */
const checkMs = 1_000;
/** Without an answer after this time, the database is slow, in ms. */
export const slowMs = 2_000;

/** `time` follows the clock of the database. */
type WatchParts = { database: Database; clock: Clock; time: DatabaseTime; log: Log };

/** Writes to a database, and watches its condition. */
export class DatabaseWriter implements StoreWriter, AsyncDisposable {
  /** A failed database recovers by itself, so nothing ends the process. */
  readonly lost: Promise<never> = new Promise<never>(() => undefined);
  readonly isStuck = false;
  readonly #writer: PostgresWriter;
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #time: DatabaseTime;
  readonly #log: Log;
  readonly #ended = new AbortController();
  readonly #watching: Promise<void>;
  #current: CheckedCondition = { condition: 'ok', cause: null };

  constructor(writer: PostgresWriter, { database, clock, time, log }: WatchParts) {
    this.#writer = writer;
    this.#database = database;
    this.#clock = clock;
    this.#time = time;
    this.#log = log;
    this.#watching = this.#watch();
  }

  get storage(): DatabaseCondition {
    return this.#current.condition;
  }

  async write<Name extends UseCaseName>(
    name: Name,
    command: CommandOf<Name>,
    writeOptions: Partial<WriteOptions> = {},
  ): Promise<CommandResult<Name>> {
    const { condition, cause } = this.#current;
    if (condition === 'refused') throw new StorageError('unavailable', cause);
    try {
      return await this.#writer.write(name, command, writeOptions);
    } catch (error) {
      // Reads do not notice a full disk.
      if (error instanceof StorageError && error.fault === 'full')
        this.#setCondition({ condition: 'full', cause: error });
      throw error;
    }
  }

  disable(): void {
    // Only a store on this machine is checked for damage.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      this.#database.growAgain();
      await this.#check();
      await pause(this.#clock, checkMs, this.#ended.signal);
    }
  }

  async #check(): Promise<void> {
    const answered = new AbortController();
    const { condition } = this.#current;
    const checking = checkDatabase(this.#database, condition === 'full').finally(() => answered.abort());
    const timeout = pause(this.#clock, slowMs, answered.signal).then((): CheckedCondition | null =>
      answered.signal.aborted ? null : { condition: 'slow', cause: new Error(`no answer in ${slowMs} ms`) },
    );
    const first = await Promise.race([checking, timeout]);
    if (first !== null) this.#setCondition(first);
    const result = await checking;
    // A write that found the disk full meanwhile knows more than this check, which did not write.
    if (condition === 'full' || this.storage !== 'full') this.#setCondition(result);
    // An unavailable database has no time either.
    await this.#time.follow(this.#database).catch(() => undefined);
  }

  #setCondition(found: CheckedCondition): void {
    const before = this.#current.condition;
    this.#current = found;
    if (found.condition === before || this.#ended.signal.aborted) return;
    const { condition, cause } = found;
    this.#database.refuseReads(condition === 'refused' ? cause : null);
    if (condition === 'ok') this.#log.info({}, conditionMessages[condition]);
    else
      this.#log.error(
        { database: this.#database.place, error: reasonOf(cause) },
        conditionMessages[condition],
      );
  }
}

/** Logged once when a condition begins. */
const conditionMessages: Readonly<Record<DatabaseCondition, string>> = {
  ok: 'the database is available again',
  unavailable: 'the database is unavailable: requests are refused until it is available again',
  slow: 'the database is slow: requests may be refused until it answers in time',
  full: 'the disk of the database is full: changes are refused until there is free space',
  read_only: 'the database is read-only: changes are refused until it accepts writes',
  refused: 'this node cannot use the database: requests are refused until that is corrected',
};
