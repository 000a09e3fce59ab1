import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const cache = join(import.meta.dirname, '../../node_modules/.cache/latchkey-tests');

/** How long to wait for another process that builds the same file, in ms. */
const maxWaitMs = 300_000;

/** The compile cache of Node for programs that tests start from source. */
export const compileCache: string = join(cache, 'compiled');

/**
 * Builds a file or a folder once for all test files of this run and of later runs with the same `key`. The key must
 * depend on everything that goes into the file. `make` writes the file to the given path; other processes
 * wait for the file. Returns the path. The content must stay as it is. `npm ci` removes the file.
 */
export function buildOnce(name: string, key: string, make: (file: string) => void): string {
  const file = join(cache, `${name}-${key}`);
  if (existsSync(file)) return file;
  mkdirSync(cache, { recursive: true });
  using _lock = takeLock(join(cache, `lock-${name}`));
  if (existsSync(file)) return file;
  for (const old of readdirSync(cache)) {
    if (old.startsWith(`${name}-`)) rmSync(join(cache, old), { recursive: true });
  }
  // Only a complete file gets the name.
  const unfinished = `${file}.unfinished`;
  make(unfinished);
  renameSync(unfinished, file);
  return file;
}

/** Waits for a lock. The lock ends with the process that holds it. */
function takeLock(file: string): Disposable {
  const database = new DatabaseSync(file, { timeout: maxWaitMs });
  database.exec('BEGIN EXCLUSIVE');
  return database;
}
