import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the newest PostgreSQL that Debian has installed. Null: there is none. */
export const postgresPrograms: string | null = (() => {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root) : [];
  const [newest] = versions.toSorted((one, other) => Number(other) - Number(one));
  return newest === undefined ? null : join(root, newest, 'bin');
})();
