import { closeSync, openSync, readSync } from 'node:fs';
import { constants } from 'node:os';

const maximumBytes = 16 * 1024 * 1024;
const chunkBytes = 64 * 1024;

/** Reads a file or a pipe that a person named; an endless file, such as /dev/zero, is reported as too large. */
export function readNamedFile(path: string): string {
  const file = openSync(path, 'r');
  try {
    return readToEnd(file, path);
  } finally {
    closeSync(file);
  }
}

/** Reads a file that a person named; `-` is standard input. */
export function readFileOrInput(path: string): string {
  return path === '-' ? readToEnd(0, 'standard input') : readNamedFile(path);
}

function readToEnd(file: number, name: string): string {
  const chunks: Buffer[] = [];
  for (let bytes = 0; bytes <= maximumBytes;) {
    const chunk = Buffer.alloc(chunkBytes);
    const read = readChunk(file, chunk);
    if (read === 0) return Buffer.concat(chunks).toString('utf8');
    chunks.push(chunk.subarray(0, read));
    bytes += read;
  }
  throw Object.assign(new Error(`${name} is larger than 16 MiB`), {
    code: 'EFBIG',
    errno: -constants.errno.EFBIG,
  });
}

/** On Windows, the end of standard input can be an error. */
function readChunk(file: number, chunk: Buffer): number {
  try {
    return readSync(file, chunk);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EOF') return 0;
    throw error;
  }
}
