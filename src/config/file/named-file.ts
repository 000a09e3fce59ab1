import { closeSync, constants as flags, fstatSync, openSync, readSync } from 'node:fs';
import { constants } from 'node:os';
import { UnreadableError } from '../fault/fault.ts';

const maximumBytes = 16 * 1024 * 1024;
const chunkBytes = 64 * 1024;
/** How long a pipe may stay without anybody who writes to it, and how long until the next look, in ms. */
const patienceMs = 5_000;
const pauseMs = 10;

/** Reads a file, or a pipe, that a person has named; one without an end, such as /dev/zero, is too large. */
export function readNamedFile(path: string): string {
  // Opened otherwise, a named pipe that nothing writes to would never be. Windows has neither.
  const file = openSync(path, flags.O_RDONLY | (flags.O_NONBLOCK ?? 0));
  try {
    const chunks: Buffer[] = [];
    for (let bytes = 0; bytes <= maximumBytes;) {
      const chunk = Buffer.alloc(chunkBytes);
      const read = bytes === 0 ? readFirst(file, chunk) : readSome(file, chunk);
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

/** A pipe is at its end also before anybody has opened it to write. */
function readFirst(file: number, chunk: Buffer): number {
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    const read = readSome(file, chunk);
    if (read > 0 || !fstatSync(file).isFIFO()) return read;
    if (waitedMs >= patienceMs) throw new UnreadableError('it is a pipe to which nothing was written');
    pause();
  }
}

/** Waits for as long as whoever writes to a pipe has nothing to say; 0: the end. */
function readSome(file: number, chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(file, chunk);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      pause();
    }
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
}
