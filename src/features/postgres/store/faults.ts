import { EngineError, StorageError } from '../../../service/ports.ts';
import { oneLine } from '../../../domain/text.ts';
import type { Names } from './names.ts';

/** Another request holds the lock of the idempotency key, and the wait for it has timed out. */
export class KeyInUse extends Error {
  constructor(cause: unknown) {
    super('another request has the idempotency key', { cause });
    this.name = 'KeyInUse';
  }
}

/** PostgreSQL's code of an error (https://www.postgresql.org/docs/current/errcodes-appendix.html); null: none. */
export function sqlState(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  // No SQLSTATE begins with E; codes of the system do, such as EPIPE.
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : null;
}

/** Named as in PostgreSQL. */
export const sqlStates = {
  featureNotSupported: '0A000',
  uniqueViolation: '23505',
  readOnlyTransaction: '25006',
  idleInTransactionTimeout: '25P03',
  noSuchStatement: '26000',
  invalidAuthorization: '28000',
  invalidPassword: '28P01',
  noSuchDatabase: '3D000',
  noSuchSchema: '3F000',
  serializationFailure: '40001',
  deadlock: '40P01',
  insufficientPrivilege: '42501',
  undefinedColumn: '42703',
  undefinedFunction: '42883',
  undefinedTable: '42P01',
  duplicateStatement: '42P05',
  diskFull: '53100',
  outOfMemory: '53200',
  tooManyConnections: '53300',
  lockNotAvailable: '55P03',
  queryCanceled: '57014',
  undefinedFile: '58P01',
} as const;

/** After a unique violation, the repeated transaction finds the row of the other transaction. */
const repeatable: ReadonlySet<string> = new Set([
  sqlStates.serializationFailure,
  sqlStates.deadlock,
  sqlStates.lockNotAvailable,
  sqlStates.uniqueViolation,
]);

/**
 * The server is stopping, has crashed, or accepts no connections; the connection failed; or the machine or the data of
 * the database is damaged.
 */
const away = /^(?:08...|57P0[1-5]|53300|55...|58...|XX...)$/;

/**
 * What to do with a transaction whose COMMIT was not sent: `repeat` it at once, or repeat it when the database is
 * available again (`away`). `error`: the statement is wrong.
 */
export function transactionFault(error: unknown): 'repeat' | 'away' | 'full' | 'error' {
  const state = sqlState(error);
  if (state === null) return isOfTheConnection(error) ? 'away' : 'error';
  if (repeatable.has(state)) return 'repeat';
  if (state === sqlStates.diskFull) return 'full';
  if (away.test(state) || unusable.has(state)) return 'away';
  return 'error';
}

/** Errors that pass, or that an administrator must fix; also tables of another version. */
const unusable: ReadonlySet<string> = new Set([
  sqlStates.readOnlyTransaction,
  sqlStates.queryCanceled,
  sqlStates.idleInTransactionTimeout,
  sqlStates.outOfMemory,
  // With pipelining, the driver may use a prepared statement before it learns that preparing it failed.
  sqlStates.noSuchStatement,
  sqlStates.duplicateStatement,
  sqlStates.invalidPassword,
  sqlStates.invalidAuthorization,
  sqlStates.noSuchDatabase,
  sqlStates.insufficientPrivilege,
  sqlStates.noSuchSchema,
  sqlStates.undefinedTable,
  sqlStates.undefinedColumn,
  sqlStates.undefinedFunction,
]);

/**
 * Whether an error instead of the response to COMMIT proves that nothing was committed. An error that ends the backend
 * may have come after the commit.
 */
export function isSurelyUndone(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && /^(?:23|25P02|40|53|25006)/.test(state) && !mayHaveCrashed(error);
}

/** Errors of the driver have no code; errors of the system have another kind of code. All of them end the connection. */
function isOfTheConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isOfTheSystem = 'syscall' in error || ('code' in error && String(error.code).startsWith('E'));
  return (
    isOfTheSystem ||
    isOfTls(error) ||
    /connection|timeout|timed out|terminated|not queryable|received unexpected/i.test(error.message)
  );
}

/** Whether the server rejected a statement but keeps the connection. */
export function isAnswered(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && !/^(?:57P|08)/.test(state) && !mayHaveCrashed(error);
}

/**
 * Whether a server with a full or broken disk may have crashed with this error, perhaps after a commit. Severities are
 * in the language of the server, so any severity but the English ERROR may mean a crash.
 */
function mayHaveCrashed(error: unknown): boolean {
  if (!(error instanceof Error) || !('severity' in error) || error.severity === 'ERROR') return false;
  return /^(?:53|58|XX)/.test(sqlState(error) ?? '');
}

/** Whether a deadline of the client has passed. */
export function isTimeout(error: unknown): boolean {
  return (
    error instanceof Error && sqlState(error) === null && /timeout|timed out|ETIMEDOUT/i.test(error.message)
  );
}

/** Error codes of OpenSSL and Node about certificates. */
const tlsCode =
  /^(?:ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/;

function isOfTls(error: Error): boolean {
  return ('code' in error && tlsCode.test(String(error.code))) || hasNoTls(error);
}

/** Whether the server has no TLS, so that no certificate would help. */
function hasNoTls(error: Error): boolean {
  return error.message.includes('does not support SSL');
}

export function readErrorOf(error: unknown): unknown {
  return transactionFault(error) === 'error' ? error : new StorageError('unreadable', error);
}

export function storageErrorOf(error: unknown): unknown {
  if (error instanceof StorageError) return error;
  const fault = transactionFault(error);
  if (fault === 'full') return new StorageError('full', error);
  return fault === 'away' || fault === 'repeat' ? new StorageError('unavailable', error) : error;
}

/**
 * This version or this role may not use the database. Nothing was changed, and waiting does not help. `isConfigured`:
 * the configuration is wrong.
 */
export class PostgresRefused extends EngineError {
  readonly code = 'database_refused';
  constructor(reason: string, options: { cause?: unknown; isConfigured?: boolean } = {}) {
    super(`The database is refused: ${reason}`, options);
    this.name = 'PostgresRefused';
  }
}

/** The database cannot be used now, but perhaps later. */
export class PostgresAway extends EngineError {
  constructor(place: string, cause: unknown) {
    super(`The database at ${place} cannot be used: ${reasonOf(cause)}`, { cause });
    this.name = 'PostgresAway';
  }
}

const wrongAddress: ReadonlySet<string | null> = new Set([
  sqlStates.invalidPassword,
  sqlStates.invalidAuthorization,
  sqlStates.noSuchDatabase,
]);

/** The refusal for an error that does not pass by itself, with advice; null for other errors. */
export function refusalOf(
  error: unknown,
  { names, place }: { names: Names; place: string },
): PostgresRefused | null {
  if (error instanceof PostgresRefused) return error;
  if (!(error instanceof Error)) return null;
  const reason = reasonOf(error);
  const configured = { cause: error, isConfigured: true };
  if (isOfTls(error)) {
    // Node adds advice that does not apply here.
    const [problem] = reason.split('; if ');
    const advice = hasNoTls(error)
      ? 'turn TLS on there (ssl = on), or, for a server on this machine, end store.postgres.url in ?sslmode=disable.'
      : 'set store.postgres.ca_file to the CA of its certificate, and use the host name of the certificate in store.postgres.url.';
    return new PostgresRefused(
      `the connection to ${place} cannot be secured (${problem}): ${advice}`,
      configured,
    );
  }
  if (wrongAddress.has(sqlState(error))) {
    return new PostgresRefused(`${reason} (${place}): correct store.postgres.url.`, configured);
  }
  if (sqlState(error) !== sqlStates.insufficientPrivilege) return null;
  if (isOfConnect(error)) {
    return new PostgresRefused(`${reason} (${place}): GRANT CONNECT ON DATABASE to its role.`, {
      cause: error,
    });
  }
  return new PostgresRefused(
    `its role has no right to make or use the schema ${names.schema} (${reason}): run CREATE SCHEMA ${names.schema} AUTHORIZATION with the name of the role, or, if the schema exists, GRANT USAGE ON SCHEMA ${names.schema}.`,
    { cause: error },
  );
}

/** The function of the server that rejects a role without CONNECT. The message itself may be in any language. */
const connectRoutine = 'CheckMyDatabase';

function isOfConnect(error: Error): boolean {
  return 'routine' in error && error.routine === connectRoutine;
}

/** The message of an error in one line; a failed connection to several addresses has several messages. */
export function reasonOf(error: unknown): string {
  if (error instanceof StorageError) return reasonOf(error.cause);
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  const messages = errors.map((each) => (each instanceof Error ? each.message : String(each)));
  return oneLine([...new Set(messages)].join(', '));
}
