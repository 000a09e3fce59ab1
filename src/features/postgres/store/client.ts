import type { SecureContext } from 'node:tls';
import { types, type ClientConfig, type PoolConfig, type QueryConfig } from 'pg';

export type DatabaseAddress = {
  /** A name or an address, or the directory of a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Null: no TLS. Otherwise the certificate and the host name of the server are checked. */
  tls: { trust: () => SecureContext } | null;
};

/** The maximum wait for another transaction, in ms: for a row or an idempotency key. */
const maxLockWaitMs = 2_000;
/** The maximum wait for a free or a new connection, in ms. */
const connectTimeoutMs = 5_000;
/** How much later the client's deadline is, in ms. After the server's deadline, the connection can still be used. */
const clientMarginMs = 1_000;
/** Connections are renewed, so that each node returns to a database that has moved. */
const lifetimeS = 3_600;
/** The maximum of Node's timers (24 days). */
const maxTimerMs = 2 ** 31 - 1;

const bigint = 20;

/** 64-bit integers are read as numbers, because times, counts, amounts and ids are far below 2^53. */
const numbers = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === bigint ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** The address of a database, for people. */
export function placeOf({ host, port }: Pick<DatabaseAddress, 'host' | 'port'>): string {
  return host.startsWith('/')
    ? `${host}/.s.PGSQL.${port}`
    : `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Sets every option, so that the driver reads neither `PGHOST` and similar variables nor `~/.pgpass`. */
export function clientConfig({ tls, password, ...address }: DatabaseAddress): ClientConfig {
  return {
    ...address,
    // With an empty password, the driver sends nothing and waits until the server closes the connection.
    password: () => (password === '' ? ' ' : password),
    ssl: tls === null ? false : { rejectUnauthorized: true, secureContext: tls.trust() },
    keepAlive: true,
    application_name: 'latchkey',
  };
}

/** The client's deadlines for a connection and a query. */
export function deadlines(queryMs: number): ClientConfig {
  return { connectionTimeoutMillis: connectTimeoutMs, query_timeout: queryMs };
}

export type ConnectionSettings = {
  statementTimeoutMs: number;
  /**
   * Whether a pooler may use another connection of the server for each transaction. Settings and prepared statements of
   * a session are lost then. Default: false.
   */
  isBehindPooler?: boolean;
  /** The name of this process in `pg_stat_activity`. */
  node?: string;
};

/** The options of a pool of pipelined connections. */
export function poolConfig(
  address: DatabaseAddress,
  { statementTimeoutMs, isBehindPooler = false, node }: ConnectionSettings,
): PoolConfig {
  return {
    ...clientConfig(address),
    // survey.ts counts the connected nodes by this name.
    ...(node !== undefined && { application_name: `latchkey ${node}` }),
    pipeline: true,
    types: numbers,
    // The server cancels a slow statement. If the server does not answer at all, the connection is closed.
    ...deadlines(statementTimeoutMs + clientMarginMs),
    maxLifetimeSeconds: lifetimeS,
    ...(!isBehindPooler && {
      // The pool awaits the promise, although the type says void.
      onConnect: (client) => client.query(settings('SESSION', statementTimeoutMs)) as unknown as void,
    }),
  };
}

/** The options of a connection without a deadline for statements. */
export function patientConfig(address: DatabaseAddress): ClientConfig {
  return { ...clientConfig(address), types: numbers, connectionTimeoutMillis: connectTimeoutMs };
}

/** A query without a deadline. */
export function unlimited(text: string): QueryConfig {
  const query: QueryConfig & { query_timeout: number } = { text, query_timeout: maxTimerMs };
  return query;
}

/**
 * The settings of a session or, behind a pooler, of a transaction: deadlines of the server, and values that the
 * administrator may have changed. `extra_float_digits`: read fractions with all their digits.
 */
export function settings(scope: 'SESSION' | 'LOCAL', statementTimeoutMs: number): string {
  return `SET ${scope} statement_timeout = ${statementTimeoutMs};
    SET ${scope} lock_timeout = ${lockWaitMs(statementTimeoutMs)};
    SET ${scope} idle_in_transaction_session_timeout = ${statementTimeoutMs + clientMarginMs};
    SET ${scope} idle_session_timeout = 0; SET ${scope} extra_float_digits = 1;
    SET ${scope} synchronous_commit = on; SET ${scope} timezone = 'UTC'`;
}

/** The maximum wait for a lock, in ms; shorter than the deadline of a statement. */
export function lockWaitMs(statementTimeoutMs: number): number {
  return Math.min(maxLockWaitMs, Math.ceil(statementTimeoutMs / 2));
}
