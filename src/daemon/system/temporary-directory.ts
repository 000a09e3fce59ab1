import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EnvironmentError, formatReason } from '../../config/errors.ts';

/** A directory that is removed when it is disposed of, or when the process exits. */
export type TemporaryDirectory = Disposable & { path: string };

const paths = new Set<string>();

/** Creates an empty directory for this user alone, whose name begins with a prefix. */
export function makeTemporaryDirectory(prefix: string): TemporaryDirectory {
  const path = create(prefix);
  // Nothing is disposed of where the process exits, for instance because the reader of its output is gone.
  if (paths.size === 0) process.on('exit', removeAll);
  paths.add(path);
  return {
    path,
    [Symbol.dispose]() {
      paths.delete(path);
      if (paths.size === 0) process.off('exit', removeAll);
      remove(path);
    },
  };
}

function create(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    const what = `cannot create a temporary directory in ${tmpdir()}: ${formatReason(error)}`;
    throw new EnvironmentError(
      `${what}; set ${process.platform === 'win32' ? 'TEMP' : 'TMPDIR'} to a directory that this user can write to`,
      {
        cause: error,
      },
    );
  }
}

function removeAll(): void {
  for (const path of paths) remove(path);
}

/** Tries again, because a thread that still writes may create a file meanwhile. */
function remove(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 3 });
}
