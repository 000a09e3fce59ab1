import { isUnusedAuthority } from '../../../service/lifecycle/start.ts';
import type { Database } from '../store/database.ts';
import { examine } from '../store/migrations.ts';
import { databaseIn } from '../../../store/sqlite/files/state-directory.ts';
import { examineContents } from '../../../daemon/store/contents.ts';

/** Data in a state directory that belongs elsewhere, and advice. */
export type LeftBehind = { what: string; advice: string };

/**
 * Detects SQLite data of an authority that was never moved to the (empty) database, and data of an agent: a start would
 * answer 404 for sold license keys. Null if there is none. Changes nothing. Rejects with the error of the database.
 */
export async function findLeftBehind(stateDir: string, database: Database): Promise<LeftBehind | null> {
  const path = databaseIn(stateDir);
  const examined = examineContents(stateDir);
  if (examined.ok) {
    const { role, records } = examined.contents;
    if (role === 'agent') {
      const what = `${path} is an agent's, and the configuration has no upstream`;
      return { what, advice: 'put the upstream back, or choose another state_dir for an authority' };
    }
    if (Object.values(records).every((count) => count === 0)) return null;
  }
  if (await isTaken(database, examined.ok ? examined.contents.instance : null)) return null;
  return {
    what: examined.ok
      ? `the records of the authority are in ${path}, and none of them in the database`
      : `it has no records, and ${path}, which may have the records of the authority, cannot be read (${examined.reason})`,
    advice: 'move them with latchkey store move, or move that file away to start with an empty store',
  };
}

/** Whether the database has records of an authority, or is the database of this instance. */
async function isTaken(database: Database, instance: string | null): Promise<boolean> {
  if ((await examine(database)) === null) return false;
  const { reader } = database;
  if (!(await isUnusedAuthority(reader))) return true;
  return instance !== null && (await reader.settings.get('instance')) === instance;
}
