import type { ClockReading } from '../../domain/clock.ts';
import type { Database } from '../../store/postgres/database.ts';
import { epochMs } from '../../store/postgres/statements.ts';
import type { TimeSource } from '../system/clock.ts';

/** So far the clock of a machine may lie beside that of the database, in ms: an answer takes time, too. */
const toleranceMs = 5_000;

/**
 * The time of a copy: where the clock of its machine is wrong, that of the database counts, which all copies have in
 * common (src/store/postgres/README.md, What copies have in common).
 */
export class DatabaseTime implements TimeSource {
  readonly #machine: TimeSource;
  /** What the database has last said, and when that came here. */
  #said: ClockReading | null = null;

  constructor(machine: TimeSource) {
    this.#machine = machine;
  }

  read(): ClockReading {
    const { wall, monotonic } = this.#machine.read();
    if (this.#said === null) return { wall, monotonic };
    const there = this.#said.wall + monotonic - this.#said.monotonic;
    return { wall: Math.abs(wall - there) > toleranceMs ? there : wall, monotonic };
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#machine.sleep(ms, signal);
  }

  /** Asks the database for its time; rejects as a query does. */
  async follow({ query }: Pick<Database, 'query'>): Promise<void> {
    const [row] = await query(`SELECT ${epochMs} AS now`);
    this.#said = { wall: Number(row?.['now']), monotonic: this.#machine.read().monotonic };
  }
}
