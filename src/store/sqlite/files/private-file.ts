import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';

/** Makes a file for its owner alone, in the place of what has its name; follows no link. Gives its descriptor. */
export function createFile(path: string): number {
  rmSync(path, { force: true });
  // `x` is O_EXCL, which fails where anything, also a link, took the name meanwhile.
  return openSync(path, 'wx', 0o600);
}

/** Writes a file in one step, so that nobody reads half of it; for its owner alone. */
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

/** Reads a file, but not through a link; null when there is none. */
export function readOwnFile(path: string): string | null {
  try {
    return readFileSync(path, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NOFOLLOW });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
