import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const cache = join(import.meta.dirname, '../../node_modules/.cache/latchkey-tests');

/**
 * A file that takes long to make, which the test files of a run share, and later runs too as long as `key` stays:
 * it has to stand for all that goes into the file. `make` writes it to the path that it is given. Gives the path of
 * the file, which nobody may change. `npm ci` removes it.
 */
export function madeOnce(name: string, key: string, make: (file: string) => void): string {
  const file = join(cache, `${name}-${key}`);
  if (existsSync(file)) return file;
  mkdirSync(cache, { recursive: true });
  for (const old of readdirSync(cache)) {
    if (old.startsWith(`${name}-`)) rmSync(join(cache, old));
  }
  // Only a whole one has the name.
  const unfinished = `${file}.${process.pid}`;
  make(unfinished);
  renameSync(unfinished, file);
  return file;
}
