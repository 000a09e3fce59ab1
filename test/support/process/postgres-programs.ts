import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the newest PostgreSQL from Debian's packages. Null: none is installed. */
export const postgresPrograms: string | null = (() => {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root) : [];
  const [newest] = versions.toSorted((one, other) => Number(other) - Number(one));
  return newest === undefined ? null : join(root, newest, 'bin');
})();
