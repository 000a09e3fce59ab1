import { sqlState, sqlStates } from './faults.ts';
import type { Database } from './database.ts';
import { inSchema } from './names.ts';
import { searchedText } from './statements.ts';

/** Who has created pg_trgm has chosen its schema. */
const extensionSchema = `SELECT quote_ident(nspname) AS schema FROM pg_catalog.pg_extension
  JOIN pg_catalog.pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm'`;

/** Whether searches in the schema `$1` have their index; null: there are no licenses yet. Needs no right to the schema. */
export const isIndexed = `SELECT bool_or(relname = 'license_search') AS "isIndexed" FROM pg_catalog.pg_class
  WHERE relnamespace = to_regnamespace($1::text) AND relname IN ('license', 'license_search')`;

/** What a server answers that lacks the extension, whose role may not create it or the index, or whose tables are in use. */
const unable: ReadonlySet<string> = new Set([
  sqlStates.insufficientPrivilege,
  sqlStates.featureNotSupported,
  sqlStates.undefinedFile,
  sqlStates.noSuchSchema,
  sqlStates.lockNotAvailable,
]);

/** Makes the index of searches. Without the right to, a search reads every license, and the doctor says so. */
export async function indexSearches(database: Database): Promise<void> {
  const { names } = database;
  const [row] = await database.query(isIndexed, [names.schema]);
  if (row?.['isIndexed'] !== false) return;
  try {
    await database.lend(async (connection) => {
      await connection.begin(null, []);
      await connection.execute('SET LOCAL statement_timeout = 0');
      // Two schemas of a database may begin at the same time.
      await connection.execute(`SELECT pg_advisory_xact_lock(hashtextextended('latchkey pg_trgm', 0))`);
      await connection.execute('CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public');
      const [extension] = await connection.query(extensionSchema);
      await connection.execute(
        inSchema(
          names,
          `CREATE INDEX IF NOT EXISTS license_search ON latchkey.license
             USING gin ((${searchedText.replaceAll('license.', '')}) ${String(extension?.['schema'])}.gin_trgm_ops)`,
        ),
      );
      await connection.commit();
    });
  } catch (error) {
    if (!unable.has(String(sqlState(error)))) throw error;
  }
}
