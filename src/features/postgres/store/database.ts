import { Pool, type PoolClient } from 'pg';
import { StorageError } from '../../../service/ports.ts';
import type { AuthorityReader } from '../../../service/tables.ts';
import { placeOf, poolConfig, type ConnectionSettings, type DatabaseAddress } from './client.ts';
import { Connection } from './connection.ts';
import { isTimeout, sqlState, sqlStates, readErrorOf, transactionFault } from './faults.ts';
import { Lookups, type AfterTurn, SharedReads } from './shared-reads.ts';
import { namesIn, type Names } from './names.ts';
import type { SqlValue } from '../../../store/sql.ts';
import { queryOf, type Row } from './statements.ts';
import { prepareReader } from './tables.ts';

export type DatabaseSettings = ConnectionSettings & {
  address: DatabaseAddress;
  schema: string;
  /** The maximum number of connections of this process. */
  pool: number;
  /** Batches the reads of one turn of the event loop. Default: no batches. */
  afterTurn?: AfterTurn;
};

/** The database of an authority, and the connections of this process. */
export class Database implements AsyncDisposable {
  readonly names: Names;
  /** The address, for people. */
  readonly place: string;
  readonly reader: AuthorityReader;
  /** The maximum number of connections of this process. */
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
    // A query on a lost connection fails, and the pool removes a lost idle connection, so these events need no handling.
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

  /** The numbers of all connections, of free connections, and of requests that wait for a connection. */
  get use(): { connections: number; free: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { connections: totalCount, free: idleCount, waiting: waitingCount };
  }

  /** Rejects reads with this cause; null: accepts reads again. */
  refuseReads(cause: unknown): void {
    this.#refusal = cause;
  }

  /** Lets the pool grow again: the server may accept more connections now. */
  growAgain(): void {
    this.#pool.options.max = this.size;
  }

  /** Lends a connection. Closes it if `work` throws, because the state of the connection is unknown then. */
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

  /** Runs a query that is not prepared. */
  readonly query = async (text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> => {
    const { rows } = await this.#pool.query<Row>(text, [...values]);
    return rows;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }

  /** If no new connection is possible, tries again, so as to wait for an existing connection. */
  async #sharing<Value>(work: () => Promise<Value>): Promise<Value> {
    for (let left = this.size; ; left -= 1) {
      try {
        return await work();
      } catch (error) {
        if (!this.#stopGrowing(error) || left === 0) throw error;
      }
    }
  }

  /** Stops the growth of the pool if the server accepts no more connections. Returns whether there is one to wait for. */
  #stopGrowing(error: unknown): boolean {
    const { totalCount, options } = this.#pool;
    if (sqlState(error) !== sqlStates.tooManyConnections || totalCount === 0) return false;
    options.max = Math.min(options.max, totalCount);
    return true;
  }

  #connectionOf(client: PoolClient): Connection {
    const existing = this.#connections.get(client);
    if (existing !== undefined) return existing;
    const connection = new Connection(client, this.names, this.#connectionSettings);
    this.#connections.set(client, connection);
    return connection;
  }

  /** Repeats a read once if the connection was lost, but not after a timeout. */
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
