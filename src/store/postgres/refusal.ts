import { oneLine } from '../../domain/text.ts';
import { StorageError } from '../../service/ports.ts';
import { hasNoTls, isOfTls, sqlState, sqlStates } from './faults.ts';
import type { Names } from './names.ts';

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
