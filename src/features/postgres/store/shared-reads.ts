import type { Pool, PoolClient } from 'pg';
import type { SqlValue } from '../../../store/sql.ts';
import { queryOf, type Row, type Statement, type Lookup } from './statements.ts';

/** Reads that wait on one connection before another connection is borrowed. */
const maxWaiting = 32;
/** The share of the pool that these reads may borrow. The rest is for writes and lists. */
const maxShareOfPool = 0.25;
/** After this many reads, a connection returns to the pool, where other requests may wait for it. */
const maxReads = 1_000;

type Borrowed = {
  readonly client: Promise<PoolClient>;
  /** Reads that were sent on the connection. */
  reads: number;
  /** Reads that wait for their answer. */
  waiting: number;
  isLost: boolean;
};

/**
 * Pipelines short reads of many requests on a few connections: this costs both sides less than a connection for each read
 * (src/features/postgres/store/README.md, Reads).
 */
export class SharedReads {
  readonly #pool: Pool;
  readonly #maxConnections: number;
  readonly #borrowed: Borrowed[] = [];
  readonly #isBehindPooler: boolean;

  constructor(pool: Pool, isBehindPooler: boolean) {
    this.#pool = pool;
    this.#isBehindPooler = isBehindPooler;
    this.#maxConnections = Math.max(1, Math.floor(pool.options.max * maxShareOfPool));
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
      // After any error, even one of the server, the driver no longer knows what is prepared on the connection.
      borrowed.isLost = true;
      throw error;
    } finally {
      borrowed.waiting -= 1;
      if (borrowed.waiting === 0) void this.#giveBack(borrowed);
    }
  }

  #choose(): Borrowed {
    const usable = this.#borrowed.filter(({ reads, isLost }) => !isLost && reads < maxReads);
    const [first, ...others] = usable;
    const leastBusy =
      first && others.reduce((one, other) => (other.waiting < one.waiting ? other : one), first);
    const isFull = leastBusy === undefined || leastBusy.waiting >= maxWaiting;
    if (leastBusy !== undefined && (!isFull || usable.length >= this.#maxConnections)) return leastBusy;
    const added: Borrowed = { client: this.#pool.connect(), reads: 0, waiting: 0, isLost: false };
    this.#borrowed.push(added);
    return added;
  }

  async #giveBack(borrowed: Borrowed): Promise<void> {
    this.#borrowed.splice(this.#borrowed.indexOf(borrowed), 1);
    const client = await borrowed.client.catch(() => null);
    client?.release(borrowed.isLost);
  }
}

/** Calls a function at the end of this turn of the event loop. */
export type AfterTurn = (work: () => void) => unknown;

const maxKeysPerStatement = 256;

type ReadRows = (statement: Statement, values: readonly SqlValue[]) => Promise<readonly Row[]>;

type Waiting = PromiseWithResolvers<Row | undefined>;

/** The waiting reads of one statement, by key. Reads of the same key share one entry. */
type Group = Map<string, Waiting>;

/**
 * Reads single rows by key. All reads of one turn of the event loop become one statement, which costs both sides much less than
 * a statement for each (src/features/postgres/store/README.md, Reads).
 */
export class Lookups {
  readonly #read: ReadRows;
  readonly #afterTurn: AfterTurn;
  readonly #gathering = new Map<Lookup, Group>();

  constructor(read: ReadRows, afterTurn: AfterTurn) {
    this.#read = read;
    this.#afterTurn = afterTurn;
  }

  /** Reads the row with a key. Rejects as `ReadRows` does. */
  read(statement: Lookup, key: string): Promise<Row | undefined> {
    const group = this.#gathering.get(statement);
    if (group === undefined) return this.#begin(statement, key);
    const joined = group.get(key);
    if (joined !== undefined) return joined.promise;
    const waiting = Promise.withResolvers<Row | undefined>();
    group.set(key, waiting);
    if (group.size === maxKeysPerStatement) this.#gathering.delete(statement);
    return waiting.promise;
  }

  #begin(statement: Lookup, key: string): Promise<Row | undefined> {
    const waiting = Promise.withResolvers<Row | undefined>();
    const group: Group = new Map([[key, waiting]]);
    this.#gathering.set(statement, group);
    this.#afterTurn(() => {
      if (this.#gathering.get(statement) === group) this.#gathering.delete(statement);
      void this.#send(statement, group);
    });
    return waiting.promise;
  }

  async #send(statement: Lookup, group: Group): Promise<void> {
    try {
      const rows = await this.#read(statement, [[...group.keys()]]);
      for (const row of rows) group.get(String(row[statement.key]))?.resolve(row);
      for (const { resolve } of group.values()) resolve(undefined);
    } catch (error) {
      for (const { reject } of group.values()) reject(error);
    }
  }
}
