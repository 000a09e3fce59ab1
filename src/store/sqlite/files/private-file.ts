import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  existsSync,
  mkdirSync,
  statSync,
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
  renameOver(draft, path);
}

/** How long to wait before each further attempt, in ms: about a second in all. */
const pausesMs: readonly number[] = [5, 10, 20, 40, 75, 100, 150, 200, 200, 200];
/** Windows refuses to replace a file that a program has opened, even for a moment, as virus scanners do. */
const busyErrors: ReadonlySet<unknown> = new Set(['EPERM', 'EACCES', 'EBUSY']);

/** Renames a file; a file that has the new name is replaced. On Windows, waits for other programs to close the file. */
export function renameOver(from: string, to: string): void {
  retryWhileBusy(() => renameSync(from, to));
}

/** Calls `action` again while Windows refuses it because a file is open. Blocks the thread for at most a second. */
export function retryWhileBusy(
  action: () => void,
  { platform = process.platform, pause = block }: { platform?: NodeJS.Platform; pause?: typeof block } = {},
): void {
  for (const pauseMs of platform === 'win32' ? pausesMs : []) {
    try {
      action();
      return;
    } catch (error) {
      if (!busyErrors.has(codeOf(error))) throw error;
      pause(pauseMs);
    }
  }
  action();
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Opens a file for reading. Fails with the code ELOOP for a link, and does not wait for the writer of a pipe. Returns
 * the descriptor.
 */
export function openOwnFile(path: string, platform: NodeJS.Platform = process.platform): number {
  if (platform !== 'win32') {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  }
  const file = openSync(path, 'r');
  try {
    // Windows has no such flags. If the link was replaced by a file meanwhile, the file that is open is another one.
    const [found, opened] = [lstatSync(path, { bigint: true }), fstatSync(file, { bigint: true })];
    if (found.isSymbolicLink() || found.ino !== opened.ino || found.dev !== opened.dev) {
      throw Object.assign(new Error(`ELOOP: ${path} is a link`), { code: 'ELOOP', syscall: 'open', path });
    }
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/** Reads a file, but follows no link. Returns null if there is no file. */
export function readOwnFile(path: string): string | null {
  let file: number;
  try {
    file = openOwnFile(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

/**
 * Creates a directory and its parents. The option `recursive` of Node 26 never returns for a path where nothing can be
 * created, such as /proc.
 */
export function makeDirectory(path: string, mode: number = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const code = codeOf(error);
    // On Windows, the root of a drive fails with another code.
    if (code === 'EEXIST' || existsSync(path)) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makeDirectory(dirname(path), mode);
    mkdirSync(path, { mode });
  }
}

/**
 * Tells a directory from its copies: `listen.json` has this text, so that the one in a copy is not used. A directory that
 * was moved on its file system keeps it. Throws the error of the system.
 */
export function identityOf(directory: string): string {
  const { dev, ino } = statSync(directory, { bigint: true });
  return `${dev}:${ino}`;
}

/** Makes a new file name survive a power cut. */
export function syncDirectory(directory: string): void {
  // Windows flushes only what is open for writing.
  const handle = openSync(directory, process.platform === 'win32' ? 'r+' : 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null;
}
