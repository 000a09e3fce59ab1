import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that is removed at the end of its scope. */
export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string;
}

/** Creates an empty directory, whose path is short enough for a Unix socket. Dispose removes the directory. */
export function temporaryDirectory(below: string = tmpdir()): TemporaryDirectory {
  const path = mkdtempSync(join(below, 'latchkey-'));
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}
