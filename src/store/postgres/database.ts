import { Pool, types, type PoolClient } from 'pg';
import type { AuthorityReader } from '../../service/tables.ts';
import { Connection } from './connection.ts';
import { storageErrorOf, transactionFault } from './faults.ts';
import { namesIn, type Names } from './names.ts';
import type { Row, SqlValue, Statement } from './statements.ts';
import { prepareReader } from './tables.ts';

/** Where a database is, as its URL says. */
export type DatabaseAddress = {
  /** A name or an address, or the directory of a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Null: no TLS. Otherwise the certificate of the server is checked, with its name. */
  tls: { ca: string | null } | null;
};

export type DatabaseSettings = {
  address: DatabaseAddress;
  schema: string;
  /** How many connections this process may have. */
  pool: number;
  statementTimeoutMs: number;
};

/** How long another transaction is waited for, in ms: for a row, and for an idempotency key. */
const lockTimeoutMs = 2_000;
/** How long a connection is waited for, in ms: a free one, or that a new one is made. */
const connectTimeoutMs = 5_000;
/** By how much the deadline of this side is later than that of the server, which is the kinder one, in ms. */
const silenceMs = 1_000;
/** Connections are renewed, so that each copy finds its way back to a database that has moved. */
const lifetimeS = 3_600;

const bigint = 20;

/** Numbers of 64 bits are read as numbers: times, counts, amounts of cents and ids are far below 2^53. */
const numbers = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === bigint ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** A database that an authority keeps its records in, and the connections of this process to it. */
export class Database implements AsyncDisposable {
  readonly names: Names;
  readonly reader: AuthorityReader;
  readonly #pool: Pool;
  readonly #connections = new WeakMap<PoolClient, Connection>();

  constructor({ address, schema, pool, statementTimeoutMs }: DatabaseSettings) {
    this.names = namesIn(schema);
    this.#pool = new Pool({
      ...clientConfig(address),
      max: pool,
      pipeline: true,
      types: numbers,
      connectionTimeoutMillis: connectTimeoutMs,
      // The server ends a statement, and goes on; where it does not answer at all, the connection is given up.
      query_timeout: statementTimeoutMs + silenceMs,
      maxLifetimeSeconds: lifetimeS,
      onConnect: (client) => client.query(sessionSettings(statementTimeoutMs)) as unknown as void,
    });
    // Of a connection that nobody uses; it leaves the pool by itself.
    this.#pool.on('error', () => undefined);
    this.reader = prepareReader({
      names: this.names,
      rows: (statement, values) => this.#read(statement, values),
    });
  }

  /** How many connections there are, how many of them are free, and how many requests wait for one. */
  get use(): { connections: number; free: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { connections: totalCount, free: idleCount, waiting: waitingCount };
  }

  /** Lends a connection; it is closed afterwards where `work` has thrown, because nobody knows what it is in. */
  async lend<Value>(work: (connection: Connection) => Promise<Value>): Promise<Value> {
    const client = await this.#pool.connect();
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

  #connectionOf(client: PoolClient): Connection {
    const known = this.#connections.get(client);
    if (known !== undefined) return known;
    const made = new Connection(client, this.names);
    this.#connections.set(client, made);
    return made;
  }

  /** A read may be repeated: once, where the connection was lost, which is all that a restart of the server takes. */
  async #read({ name, text }: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    const query = { name, text, values: [...values] };
    try {
      return (await this.#pool.query<Row>(query)).rows;
    } catch (error) {
      if (transactionFault(error) !== 'away') throw storageErrorOf(error);
    }
    try {
      return (await this.#pool.query<Row>(query)).rows;
    } catch (error) {
      throw storageErrorOf(error);
    }
  }
}

/** Everything is given, so that the driver asks neither the environment (`PGHOST` and others) nor `~/.pgpass`. */
export function clientConfig({ tls, password, ...address }: DatabaseAddress): {
  host: string;
  port: number;
  user: string;
  database: string;
  password: () => string;
  ssl: false | { rejectUnauthorized: true; ca?: string };
  keepAlive: true;
  application_name: string;
} {
  const ca = tls?.ca ?? null;
  return {
    ...address,
    password: () => password,
    ssl: tls === null ? false : { rejectUnauthorized: true, ...(ca !== null && { ca }) },
    keepAlive: true,
    application_name: 'latchkey',
  };
}

/** For what the server is to end by itself. A pooler may lose them: what they guard is guarded here as well. */
function sessionSettings(statementTimeoutMs: number): string {
  return `SET statement_timeout = ${statementTimeoutMs};
    SET lock_timeout = ${Math.min(lockTimeoutMs, statementTimeoutMs)};
    SET idle_in_transaction_session_timeout = ${statementTimeoutMs + silenceMs};
    SET synchronous_commit = on; SET timezone = 'UTC'`;
}
