import { basename, join } from 'node:path';

/** A path for a local listener: a Unix socket in a temporary directory, or on Windows a pipe named after both. */
export function socketPath(directory: string, name = 'latchkey.sock'): string {
  return process.platform === 'win32' ? `\\\\.\\pipe\\${basename(directory)}-${name}` : join(directory, name);
}
