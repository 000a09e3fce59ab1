import { Pool, type PoolClient } from 'pg';
import { StorageError } from '../../service/ports.ts';
import type { AuthorityReader } from '../../service/tables.ts';
import { placeOf, poolConfig, type ConnectionSettings, type DatabaseAddress } from './client.ts';
import { Connection } from './connection.ts';
import { isTimeout, sqlState, sqlStates, readErrorOf, transactionFault } from './faults.ts';
import { Lookups, type AfterTurn, SharedReads } from './shared-reads.ts';
import { namesIn, type Names } from './names.ts';
import { queryOf, type Row, type SqlValue } from './statements.ts';
import { prepareReader } from './tables.ts';

export type DatabaseSettings = ConnectionSettings & {
  address: DatabaseAddress;
  schema: string;
  /** How many connections this process may have. */
  pool: number;
  /** By which reads of one turn leave together; without it each leaves at once. */
  afterTurn?: AfterTurn;
};

/** A database that an authority keeps its records in, and the connections of this process to it. */
export class Database implements AsyncDisposable {
  readonly names: Names;
  /** Where it is, as people write it. */
  readonly place: string;
  readonly reader: AuthorityReader;
  /** How many connections this process may have. */
  readonly size: number;
  readonly #pool: Pool;
  readonly #connectionSettings: ConnectionSettings;
  #refusal: unknown = null;
  readonly #connections = new WeakMap<PoolClient, Connection>();

  constructor({
    address,
    schema,
    pool,
    afterTurn = (work) => work(),
    ...connectionSettings
  }: DatabaseSettings) {
    this.size = pool;
    this.#connectionSettings = connectionSettings;
    this.names = namesIn(schema);
    this.place = placeOf(address);
    this.#pool = new Pool({ ...poolConfig(address, connectionSettings), max: pool });
    // Whoever uses a connection that is lost hears of it by its query; one that nobody uses leaves the pool by itself.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
    this.#pool.on('error', () => undefined);
    const { isBehindPooler = false } = connectionSettings;
    const shared = new SharedReads(this.#pool, isBehindPooler);
    const readShared: typeof shared.rows = (statement, values) =>
      this.#readTwice(() => shared.rows(statement, values));
    const lookups = new Lookups(readShared, afterTurn);
    this.reader = prepareReader({
      names: this.names,
      rows: (statement, values) => {
        const query = queryOf(statement, values, isBehindPooler);
        return this.#readTwice(async () => (await this.#pool.query<Row>(query)).rows);
      },
      row: async (statement, values) => (await readShared(statement, values))[0],
      lookUp: (statement, key) => lookups.read(statement, key),
    });
  }

  /** How many connections there are, how many of them are free, and how many requests wait for one. */
  get use(): { connections: number; free: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { connections: totalCount, free: idleCount, waiting: waitingCount };
  }

  /** Refuses what the tables are read for, with this reason, until it is null again. */
  refuseReads(cause: unknown): void {
    this.#refusal = cause;
  }

  /** Lets the pool grow to its size again, where it was not to: the server may take more connections by now. */
  growAgain(): void {
    this.#pool.options.max = this.size;
  }

  /** Lends a connection; it is closed afterwards where `work` has thrown, because nobody knows what it is in. */
  async lend<Value>(work: (connection: Connection) => Promise<Value>): Promise<Value> {
    const client = await this.#sharing(() => this.#pool.connect());
    try {
      const value = await work(this.#connectionOf(client));
      client.release();
      return value;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  /** Sends a query of no table. */
  readonly query = async (text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> => {
    const { rows } = await this.#pool.query<Row>(text, [...values]);
    return rows;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }

  /** Begins again what could have no connection of its own, to wait for one of those that there are. */
  async #sharing<Value>(work: () => Promise<Value>): Promise<Value> {
    for (let left = this.size; ; left -= 1) {
      try {
        return await work();
      } catch (error) {
        if (!this.#stopGrowing(error) || left === 0) throw error;
      }
    }
  }

  /** Grows the pool no more where the server takes no more connections; gives whether there are some to wait for. */
  #stopGrowing(error: unknown): boolean {
    const { totalCount, options } = this.#pool;
    if (sqlState(error) !== sqlStates.tooManyConnections || totalCount === 0) return false;
    options.max = Math.min(options.max, totalCount);
    return true;
  }

  #connectionOf(client: PoolClient): Connection {
    const known = this.#connections.get(client);
    if (known !== undefined) return known;
    const made = new Connection(client, this.names, this.#connectionSettings);
    this.#connections.set(client, made);
    return made;
  }

  /** A read may be repeated: once, where the connection was lost, and not where a deadline has passed already. */
  async #readTwice(read: () => Promise<readonly Row[]>): Promise<readonly Row[]> {
    if (this.#refusal !== null) throw new StorageError('unreadable', this.#refusal);
    try {
      return await this.#sharing(read);
    } catch (error) {
      if (transactionFault(error) !== 'away' || isTimeout(error)) throw readErrorOf(error);
    }
    try {
      return await this.#sharing(read);
    } catch (error) {
      throw readErrorOf(error);
    }
  }
}
