import { openReadOnly } from './read-only.ts';

/** Looks through a whole database, also beside a process that writes to it; what is wrong with it, or null. */
export function findDamage(databasePath: string): string | null {
  try {
    using database = openReadOnly(databasePath);
    const verdict = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
    // SQLite says it in lines, and under a headline.
    return verdict === 'ok'
      ? null
      : String(verdict)
          .replaceAll(/^\*{3}.*\*{3}\n|\s+$/g, '')
          .replaceAll(/\s+/g, ' ');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
