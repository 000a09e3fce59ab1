import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EnvironmentError } from '../../config/fault/environment-error.ts';
import { formatReason } from '../../config/fault/fault.ts';

/** Makes an empty directory for this user alone, whose name begins with a prefix. */
export function makeTemporary(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    const what = `cannot make a temporary directory in ${tmpdir()}: ${formatReason(error)}`;
    throw new EnvironmentError(`${what}; set TMPDIR to a directory that this user can write to`, {
      cause: error,
    });
  }
}
