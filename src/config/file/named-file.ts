import { closeSync, openSync, readSync } from 'node:fs';
import { constants } from 'node:os';

const maximumBytes = 16 * 1024 * 1024;
const chunkBytes = 64 * 1024;

/** Reads a file or a pipe that a person named; an endless file, such as /dev/zero, is reported as too large. */
export function readNamedFile(path: string): string {
  const file = openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let bytes = 0; bytes <= maximumBytes;) {
      const chunk = Buffer.alloc(chunkBytes);
      const read = readSync(file, chunk);
      if (read === 0) return Buffer.concat(chunks).toString('utf8');
      chunks.push(chunk.subarray(0, read));
      bytes += read;
    }
  } finally {
    closeSync(file);
  }
  throw Object.assign(new Error(`${path} is larger than 16 MiB`), {
    code: 'EFBIG',
    errno: -constants.errno.EFBIG,
  });
}
