import { tellsDamage } from '../faults.ts';
import { openReadOnly } from './read-only.ts';

/**
 * Looks through a whole database, also beside a process that writes to it; what is wrong with it, or null. Throws where
 * it cannot be looked at, as without room on the disk or with too many open files: no backup would mend that.
 */
export function findDamage(databasePath: string): string | null {
  try {
    using database = openReadOnly(databasePath);
    const verdict = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
    // SQLite says it in lines, and under a headline.
    return verdict === 'ok'
      ? null
      : String(verdict)
          .replace(/^\*{3}.*\*{3}\n/, '')
          .trim()
          .replaceAll(/\s+/g, ' ');
  } catch (error) {
    if (error instanceof Error && tellsDamage(error)) return error.message;
    throw error;
  }
}
