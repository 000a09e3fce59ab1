import { DatabaseSync } from 'node:sqlite';

/** How long another program is waited for that has locked the file, in ms. */
const lockWaitMs = 1_000;

/** Opens a database for a look at it, also beside a process that writes to it. */
export function openReadOnly(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: lockWaitMs });
}
