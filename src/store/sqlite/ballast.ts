import { closeSync, existsSync, lstatSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { mayWantRoom } from './faults.ts';
import { createFile } from './files/private-file.ts';
import { stateFiles } from './files/state-directory.ts';

const ballastBytes = 8 * 1024 * 1024;
/** Beside the ballast this much must be free, or it would have to be given back at the next write. */
const marginBytes = 2 * 1024 * 1024;
/** Node has no name for the error of a quota. */
const wantsOfRoom: ReadonlySet<number> = new Set([-constants.errno.ENOSPC, -constants.errno.EDQUOT]);
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

  /** Whether the disk, or a quota, which does not show in what is free, has no room for the margin. */
  lacksRoom(): boolean {
    const path = `${this.#path}.trial`;
    const error = fill(path, marginBytes, this.#filling());
    if (error === null) rmSync(path, { force: true });
    return error instanceof Error && 'errno' in error && wantsOfRoom.has(Number(error.errno));
  }

  #write(): boolean {
    // Whatever the reason (a quota does not show in what is free), there is not enough disk space.
    if (fill(this.#path, ballastBytes, this.#filling()) !== null) return false;
    if (!this.lacksRoom()) return true;
    rmSync(this.#path);
    return false;
  }
}

/** Makes a file of so many bytes, or none; gives what kept it from that, or null. */
function fill(path: string, bytes: number, filling: Uint8Array): unknown {
  try {
    const file = createFile(path);
    try {
      for (let written = 0; written < bytes;) {
        written += writeSync(file, filling, 0, Math.min(filling.length, bytes - written));
      }
    } finally {
      closeSync(file);
    }
    return null;
  } catch (error) {
    rmSync(path, { force: true });
    return error;
  }
}

/** Gives the ballast back when a disk has become so full that a start could not even open its files. */
export function freeSpaceToStart(directory: string): void {
  if (freeBytes(directory) < startBytes) rmSync(pathIn(directory), { force: true });
}

/**
 * Does what opens the store; where that fails for want of room, once more without the ballast: a quota does not show in
 * what is free.
 */
export function openWithRoom(directory: string, open: () => void): void {
  try {
    open();
  } catch (error) {
    if (!mayWantRoom(error) || !existsSync(pathIn(directory))) throw error;
    rmSync(pathIn(directory));
    open();
  }
}

function pathIn(directory: string): string {
  return join(directory, stateFiles.ballast);
}

/** The bytes that this user can still write to the disk of a directory. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
