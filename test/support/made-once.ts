import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const cache = join(import.meta.dirname, '../../node_modules/.cache/latchkey-tests');

/** How long somebody else is waited for who makes the same file, in ms. */
const longestMs = 300_000;

/** Where Node keeps the code of the programs that tests start from source, so that it is compiled once. */
export const compiledCode: string = join(cache, 'compiled');

/**
 * A file that takes long to make, which the test files of a run share, and later runs too as long as `key` stays:
 * it has to stand for all that goes into the file. `make` writes it to the path that it is given; whoever wants the
 * file meanwhile waits for it. Gives the path of the file, which nobody may change. `npm ci` removes it.
 */
export function madeOnce(name: string, key: string, make: (file: string) => void): string {
  const file = join(cache, `${name}-${key}`);
  if (existsSync(file)) return file;
  mkdirSync(cache, { recursive: true });
  using _lock = takeLock(join(cache, `lock-${name}`));
  if (existsSync(file)) return file;
  for (const old of readdirSync(cache)) {
    if (old.startsWith(`${name}-`)) rmSync(join(cache, old));
  }
  // Only a whole one has the name.
  const unfinished = `${file}.unfinished`;
  make(unfinished);
  renameSync(unfinished, file);
  return file;
}

/** Waits until no other process has a lock, which ends with the process that holds it. */
function takeLock(file: string): Disposable {
  const database = new DatabaseSync(file, { timeout: longestMs });
  database.exec('BEGIN EXCLUSIVE');
  return database;
}
