import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  existsSync,
  mkdirSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Creates a file with mode 600, and removes what had its name before. Follows no link. Returns the descriptor. */
export function createFile(path: string): number {
  rmSync(path, { force: true });
  // `x` is O_EXCL: it fails if something, even a link, has taken the name meanwhile.
  return openSync(path, 'wx', 0o600);
}

/** Replaces a file atomically: a reader sees the old text or the new one. Its mode is 600. */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.new`;
  const file = createFile(draft);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

/** Reads a file, but follows no link. Returns null if there is no file. */
export function readOwnFile(path: string): string | null {
  try {
    return readFileSync(path, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NOFOLLOW });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Creates a directory and its parents. The option `recursive` of Node 26 never returns for a path where nothing can be created, such
 * as /proc.
 */
export function makeDirectory(path: string, mode: number = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    // On Windows, the root of a drive fails with another code.
    if (code === 'EEXIST' || existsSync(path)) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makeDirectory(dirname(path), mode);
    mkdirSync(path, { mode });
  }
}
