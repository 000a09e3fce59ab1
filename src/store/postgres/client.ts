import type { SecureContext } from 'node:tls';
import { types, type ClientConfig, type PoolConfig, type QueryConfig } from 'pg';

/** Where a database is, as its URL says. */
export type DatabaseAddress = {
  /** A name or an address, or the directory of a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Null: no TLS. Otherwise the certificate of the server is checked, with its name. */
  tls: { trust: () => SecureContext } | null;
};

/** How long another transaction is waited for at most, in ms: for a row, and for an idempotency key. */
const longestLockWaitMs = 2_000;
/** How long a connection is waited for, in ms: a free one, or that a new one is made. */
const connectTimeoutMs = 5_000;
/** By how much the deadline of this side is later than that of the server, which is the kinder one, in ms. */
const silenceMs = 1_000;
/** Connections are renewed, so that each node finds its way back to a database that has moved. */
const lifetimeS = 3_600;
/** Timers of Node take no more (24 days). */
const longestTimerMs = 2 ** 31 - 1;

const bigint = 20;

/** Numbers of 64 bits are read as numbers: times, counts, amounts of cents and ids are far below 2^53. */
const numbers = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === bigint ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** Where a database is, as people write it. */
export function placeOf({ host, port }: Pick<DatabaseAddress, 'host' | 'port'>): string {
  return host.startsWith('/')
    ? `${host}/.s.PGSQL.${port}`
    : `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** What the driver is told of one connection: everything, so that it asks neither `PGHOST` and others nor `~/.pgpass`. */
export function clientConfig({ tls, password, ...address }: DatabaseAddress): ClientConfig {
  return {
    ...address,
    // With an empty one the driver leaves the connection open, and says nothing to the server, until that ends it.
    password: () => (password === '' ? ' ' : password),
    ssl: tls === null ? false : { rejectUnauthorized: true, secureContext: tls.trust() },
    keepAlive: true,
    application_name: 'latchkey',
  };
}

/** How long this side waits for a connection, and for the answer to a query. */
export function deadlines(queryMs: number): ClientConfig {
  return { connectionTimeoutMillis: connectTimeoutMs, query_timeout: queryMs };
}

/** How the connections of a process to its database behave. */
export type ConnectionSettings = {
  statementTimeoutMs: number;
  /**
   * Whether a pooler lends each transaction another connection of the server, and with it loses what belongs to a
   * session: settings, and statements that were prepared. Default: false.
   */
  isBehindPooler?: boolean;
  /** Names this process among those that share the database, for whoever looks at its connections. */
  node?: string;
};

/** What the driver is told of a pool of pipelined connections. */
export function poolConfig(
  address: DatabaseAddress,
  { statementTimeoutMs, isBehindPooler = false, node }: ConnectionSettings,
): PoolConfig {
  return {
    ...clientConfig(address),
    // By it the nodes that are connected are counted (survey.ts).
    ...(node !== undefined && { application_name: `latchkey ${node}` }),
    pipeline: true,
    types: numbers,
    // The server ends a statement, and goes on; where it does not answer at all, the connection is given up.
    ...deadlines(statementTimeoutMs + silenceMs),
    maxLifetimeSeconds: lifetimeS,
    ...(!isBehindPooler && {
      // It is waited for, whatever its type says.
      onConnect: (client) => client.query(settings('SESSION', statementTimeoutMs)) as unknown as void,
    }),
  };
}

/** What the driver is told of a connection whose statements may take as long as they take. */
export function patientConfig(address: DatabaseAddress): ClientConfig {
  return { ...clientConfig(address), types: numbers, connectionTimeoutMillis: connectTimeoutMs };
}

/** A query that may take as long as it takes. */
export function unlimited(text: string): QueryConfig {
  const query: QueryConfig & { query_timeout: number } = { text, query_timeout: longestTimerMs };
  return query;
}

/**
 * What is set in a session or, behind a pooler, in a single transaction: what the server is to end by itself, and what
 * its administrator may have set otherwise for all, so that fractions are read with all their digits.
 */
export function settings(scope: 'SESSION' | 'LOCAL', statementTimeoutMs: number): string {
  return `SET ${scope} statement_timeout = ${statementTimeoutMs};
    SET ${scope} lock_timeout = ${lockWaitMs(statementTimeoutMs)};
    SET ${scope} idle_in_transaction_session_timeout = ${statementTimeoutMs + silenceMs};
    SET ${scope} idle_session_timeout = 0; SET ${scope} extra_float_digits = 1;
    SET ${scope} synchronous_commit = on; SET ${scope} timezone = 'UTC'`;
}

/** How long a lock is waited for, in ms: less than a statement may take. */
export function lockWaitMs(statementTimeoutMs: number): number {
  return Math.min(longestLockWaitMs, Math.ceil(statementTimeoutMs / 2));
}
