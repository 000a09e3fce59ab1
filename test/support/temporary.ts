import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory that lives as long as the scope that owns it. */
export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string;
}

/** Makes an empty directory, short enough in name to hold a Unix socket, and removes it on dispose. */
export function temporaryDirectory(below: string = tmpdir()): TemporaryDirectory {
  const path = mkdtempSync(join(below, 'latchkey-'));
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}
