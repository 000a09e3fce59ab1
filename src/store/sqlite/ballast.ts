import { closeSync, lstatSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFile } from './files/private-file.ts';
import { stateFiles } from './files/state-directory.ts';

const ballastBytes = 8 * 1024 * 1024;
/** Beside the ballast this much must be free, or it would have to be given back at the next write. */
const marginBytes = 2 * 1024 * 1024;
/** With less than this not even a start gets by. */
const startBytes = 1024 * 1024;

/** Disk space kept in reserve, to be given back when the disk is full (src/sync/README.md, The store). */
export class Ballast {
  readonly #path: string;
  readonly #filling: () => Uint8Array;
  #isTaken: boolean;

  /** `filling`: what it is made of, written as often as needed; a file system must not be able to compress it. */
  constructor(directory: string, filling: () => Uint8Array) {
    this.#path = pathIn(directory);
    this.#filling = filling;
    const status = lstatSync(this.#path, { throwIfNoEntry: false });
    this.#isTaken = status?.isFile() === true && status.size === ballastBytes;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** Takes the disk space if there is enough of it; says whether it is taken now. */
  take(): boolean {
    if (!this.#isTaken && freeBytes(dirname(this.#path)) >= ballastBytes + marginBytes) {
      this.#isTaken = this.#write();
    }
    return this.#isTaken;
  }

  giveBack(): void {
    rmSync(this.#path, { force: true });
    this.#isTaken = false;
  }

  #write(): boolean {
    const filling = this.#filling();
    try {
      const file = createFile(this.#path);
      try {
        for (let written = 0; written < ballastBytes;) {
          written += writeSync(file, filling, 0, Math.min(filling.length, ballastBytes - written));
        }
      } finally {
        closeSync(file);
      }
      return true;
    } catch {
      // Whatever the reason (a quota does not show in what is free), there is not enough disk space.
      rmSync(this.#path, { force: true });
      return false;
    }
  }
}

/** Gives the ballast back when a disk has become so full that a start could not even open its files. */
export function freeSpaceToStart(directory: string): void {
  if (freeBytes(directory) < startBytes) rmSync(pathIn(directory), { force: true });
}

function pathIn(directory: string): string {
  return join(directory, stateFiles.ballast);
}

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
