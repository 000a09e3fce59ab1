import type { Pool, PoolClient } from 'pg';
import { queryOf, type Row, type SqlValue, type Statement } from './statements.ts';

/** So many reads wait for their answers on one connection before another is borrowed: one answers them in turn. */
const mostWaiting = 32;
/** The share of the pool that is borrowed at most; the others are for writes and lists. */
const mostOfPool = 0.25;
/** How many reads a connection is borrowed for: then whoever waits for one has it first. */
const mostReads = 1_000;

type Borrowed = {
  readonly client: Promise<PoolClient>;
  /** How many reads it was borrowed for, and how many of them wait for their answers. */
  reads: number;
  waiting: number;
  isLost: boolean;
};

/**
 * Short reads of many requests, sent one after the other on a connection of the pool: it costs both sides less than to
 * send each on a connection of its own (src/store/postgres/README.md, Reads).
 */
export class SharedReads {
  readonly #pool: Pool;
  readonly #mostConnections: number;
  readonly #borrowed: Borrowed[] = [];
  readonly #isBehindPooler: boolean;

  constructor(pool: Pool, isBehindPooler: boolean) {
    this.#pool = pool;
    this.#isBehindPooler = isBehindPooler;
    this.#mostConnections = Math.max(1, Math.floor(pool.options.max * mostOfPool));
  }

  /** Rejects with the driver's error. */
  async rows(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    const borrowed = this.#choose();
    borrowed.reads += 1;
    borrowed.waiting += 1;
    try {
      const client = await borrowed.client;
      const { rows } = await client.query<Row>(queryOf(statement, values, this.#isBehindPooler));
      return rows;
    } catch (error) {
      // Not even where it was answered does the driver know then what is prepared on the connection.
      borrowed.isLost = true;
      throw error;
    } finally {
      borrowed.waiting -= 1;
      if (borrowed.waiting === 0) void this.#giveBack(borrowed);
    }
  }

  #choose(): Borrowed {
    const usable = this.#borrowed.filter(({ reads, isLost }) => !isLost && reads < mostReads);
    const [first, ...others] = usable;
    const leastBusy =
      first && others.reduce((one, other) => (other.waiting < one.waiting ? other : one), first);
    const isFull = leastBusy === undefined || leastBusy.waiting >= mostWaiting;
    if (leastBusy !== undefined && (!isFull || usable.length >= this.#mostConnections)) return leastBusy;
    const made: Borrowed = { client: this.#pool.connect(), reads: 0, waiting: 0, isLost: false };
    this.#borrowed.push(made);
    return made;
  }

  async #giveBack(borrowed: Borrowed): Promise<void> {
    this.#borrowed.splice(this.#borrowed.indexOf(borrowed), 1);
    const client = await borrowed.client.catch(() => null);
    client?.release(borrowed.isLost);
  }
}
