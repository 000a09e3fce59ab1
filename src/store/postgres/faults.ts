import { StorageError } from '../../service/ports.ts';
import { oneLine } from '../../domain/text.ts';
import type { Names } from './names.ts';

/** Another request has the idempotency key, and has not ended in time. */
export class KeyInUse extends Error {
  constructor(cause: unknown) {
    super('another request has the idempotency key', { cause });
    this.name = 'KeyInUse';
  }
}

/** PostgreSQL's code of an error (https://www.postgresql.org/docs/current/errcodes-appendix.html); null: none. */
export function sqlState(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  // None begins with E, as the system's do, such as EPIPE.
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : null;
}

/** The codes that are looked at one by one, by PostgreSQL's names. */
export const sqlStates = {
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
} as const;

/** An insert that another has made first reads it next time. */
const repeatable: ReadonlySet<string> = new Set([
  sqlStates.serializationFailure,
  sqlStates.deadlock,
  sqlStates.lockNotAvailable,
  sqlStates.uniqueViolation,
]);

/**
 * Whoever stops, has crashed, or does not take connections now; whatever is of the connection itself; what is wrong
 * with the machine of the database, or with what it keeps there.
 */
const away = /^(?:08...|57P0[1-5]|53300|55...|58...|XX...)$/;

/**
 * What an error means for a transaction whose COMMIT was not sent: `repeat` is begun again at once, `away` once the
 * database is there again; the rest is an error of the statement.
 */
export function transactionFault(error: unknown): 'repeat' | 'away' | 'full' | 'error' {
  const state = sqlState(error);
  if (state === null) return isOfTheConnection(error) ? 'away' : 'error';
  if (repeatable.has(state)) return 'repeat';
  if (state === sqlStates.diskFull) return 'full';
  if (away.test(state) || unusable.has(state)) return 'away';
  return 'error';
}

/** What passes by itself, or once somebody sees to the server; that its tables are not those of this version. */
const unusable: ReadonlySet<string> = new Set([
  sqlStates.readOnlyTransaction,
  sqlStates.queryCanceled,
  sqlStates.idleInTransactionTimeout,
  sqlStates.outOfMemory,
  // What could not be prepared is asked for again behind that on a connection whose driver has not heard of it yet.
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
 * Whether an error that came in place of COMMIT's answer says that nothing was committed. Whatever ends a backend may
 * have come after its commit.
 */
export function isSurelyUndone(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && /^(?:23|25P02|40|53|25006)/.test(state) && !mayHaveCrashed(error);
}

/** The driver's own errors carry no code, those of the system one of its own: all of them end the connection. */
function isOfTheConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isOfTheSystem = 'syscall' in error || ('code' in error && String(error.code).startsWith('E'));
  return (
    isOfTheSystem ||
    isOfTls(error) ||
    /connection|timeout|timed out|terminated|not queryable|received unexpected/i.test(error.message)
  );
}

/** Whether the server itself has refused a statement, and went on. */
export function isAnswered(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && !/^(?:57P|08)/.test(state) && !mayHaveCrashed(error);
}

/**
 * Whether a server without room, or with a broken disk, may have ended with this error, perhaps after a commit had
 * reached its log. Severities come in the language of the server: any but the English ERROR may be of its end.
 */
function mayHaveCrashed(error: unknown): boolean {
  if (!(error instanceof Error) || !('severity' in error) || error.severity === 'ERROR') return false;
  return /^(?:53|58|XX)/.test(sqlState(error) ?? '');
}

/** Whether a deadline of this side has passed. */
export function isTimeout(error: unknown): boolean {
  return (
    error instanceof Error && sqlState(error) === null && /timeout|timed out|ETIMEDOUT/i.test(error.message)
  );
}

/** OpenSSL's names of what is wrong with a certificate, Node's own, and what the driver says of a server without TLS. */
const tlsCode =
  /^(?:ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/;

/** Whether a connection could not be secured. */
function isOfTls(error: Error): boolean {
  return ('code' in error && tlsCode.test(String(error.code))) || hasNoTls(error);
}

/** Whether the server has no TLS, so that no certificate would help. */
function hasNoTls(error: Error): boolean {
  return error.message.includes('does not support SSL');
}

/** The error that the caller of a read gets: reading changes nothing, whatever the request has changed before. */
export function readErrorOf(error: unknown): unknown {
  return transactionFault(error) === 'error' ? error : new StorageError('unreadable', error);
}

/** What callers are told of an error that is not theirs. */
export function storageErrorOf(error: unknown): unknown {
  if (error instanceof StorageError) return error;
  const fault = transactionFault(error);
  if (fault === 'full') return new StorageError('full', error);
  return fault === 'away' || fault === 'repeat' ? new StorageError('unavailable', error) : error;
}

/**
 * The database is not one that this version may use, or does not let this role use it; it is left as it is, and
 * waiting does not help. `isConfigured`: what the configuration says of it is wrong.
 */
export class PostgresRefused extends Error {
  readonly code = 'database_refused';
  readonly isConfigured: boolean;
  constructor(
    reason: string,
    { cause, isConfigured = false }: { cause?: unknown; isConfigured?: boolean } = {},
  ) {
    super(`The database is refused: ${reason}`, { cause });
    this.name = 'PostgresRefused';
    this.isConfigured = isConfigured;
  }
}

/** The database cannot be used now, for the reason that it says; it may be later. */
export class PostgresAway extends Error {
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

/** Why waiting does not help with an error, and what does; null: it may pass by itself, or is of another kind. */
export function refusalOf(
  error: unknown,
  { names, place }: { names: Names; place: string },
): PostgresRefused | null {
  if (error instanceof PostgresRefused) return error;
  if (!(error instanceof Error)) return null;
  const said = reasonOf(error);
  const configured = { cause: error, isConfigured: true };
  if (isOfTls(error)) {
    // Node goes on with advice that is not for here.
    const [fault] = said.split('; if ');
    const cure = hasNoTls(error)
      ? 'turn TLS on there (ssl = on), or, for a server on this machine, end store.postgres.url in ?sslmode=disable.'
      : 'name who signed its certificate in store.postgres.ca_file, and in store.postgres.url the host that it is for.';
    return new PostgresRefused(
      `the connection to ${place} cannot be secured (${fault}): ${cure}`,
      configured,
    );
  }
  if (wrongAddress.has(sqlState(error))) {
    return new PostgresRefused(`${said} (${place}): correct store.postgres.url.`, configured);
  }
  if (sqlState(error) !== sqlStates.insufficientPrivilege) return null;
  if (isOfConnect(error)) {
    return new PostgresRefused(`${said} (${place}): GRANT CONNECT ON DATABASE to its role.`, {
      cause: error,
    });
  }
  return new PostgresRefused(
    `its role has no right to make or use the schema ${names.schema} (${said}): make it by CREATE SCHEMA ${names.schema} AUTHORIZATION and the name of the role, or, if it is there, GRANT USAGE ON SCHEMA ${names.schema} to it.`,
    { cause: error },
  );
}

/** The function of the server in which a database is refused to a role; the message may be in any language. */
const connectRoutine = 'CheckMyDatabase';

function isOfConnect(error: Error): boolean {
  return 'routine' in error && error.routine === connectRoutine;
}

/** What an error says, in one line; an attempt at several addresses says it of each. */
export function reasonOf(error: unknown): string {
  if (error instanceof StorageError) return reasonOf(error.cause);
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  const said = errors.map((each) => (each instanceof Error ? each.message : String(each)));
  return oneLine([...new Set(said)].join(', '));
}
