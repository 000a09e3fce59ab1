import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory, and those above it, where there is none. Not by `recursive`, which never ends where nothing can be
 * made, as under /proc (Node 26).
 */
export function makeDirectory(path: string, mode: number = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    // What is there may be refused as something else: the root of a drive, on Windows.
    if (code === 'EEXIST' || existsSync(path)) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makeDirectory(dirname(path), mode);
    mkdirSync(path, { mode });
  }
}
