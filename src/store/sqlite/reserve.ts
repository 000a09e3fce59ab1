import { closeSync, existsSync, lstatSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { StorageError } from '../../service/ports.ts';
import type { CommandOutcome, Committer } from './commit.ts';
import { mayBeOutOfSpace } from './faults.ts';
import { createFile } from './files/private-file.ts';
import { stateFiles } from './files/state-directory.ts';

/**
 * A committer that deletes the reserve file when the disk is full, and accepts only essential commands until there is space
 * for the file again. Responses of the upstream are essential: they must be recorded on a full disk, too.
 */
export class ReservedCommitter<Command> implements Committer<Command> {
  readonly #committer: Committer<Command>;
  readonly #reserve: ReserveFile;
  readonly #isEssential: (command: Command) => boolean;

  constructor(
    committer: Committer<Command>,
    reserve: ReserveFile,
    isEssential: (command: Command) => boolean,
  ) {
    this.#committer = committer;
    this.#reserve = reserve;
    this.#isEssential = isEssential;
  }

  get broken(): StorageError | null {
    return this.#committer.broken;
  }

  /** Whether only essential commands are accepted. */
  get isFull(): boolean {
    return !this.#reserve.isTaken;
  }

  async commitBatch(commands: readonly Command[]): Promise<CommandOutcome[]> {
    if (this.isFull) return await this.#commitEssential(commands);
    const outcomes = await this.#committer.commitBatch(commands);
    if (!outcomes.some(isFull)) return outcomes;
    this.#reserve.giveBack();
    const again = await this.#commitEssential(commands.filter((_, index) => isFull(outcomes[index])));
    return outcomes.map((outcome) => (isFull(outcome) ? (again.shift() ?? outcome) : outcome));
  }

  async #commitEssential(commands: readonly Command[]): Promise<CommandOutcome[]> {
    const outcomes = await this.#committer.commitBatch(commands.filter(this.#isEssential));
    return commands.map(
      (command) =>
        (this.#isEssential(command) ? outcomes.shift() : undefined) ?? {
          error: new StorageError('full', null),
        },
    );
  }
}

function isFull(outcome: CommandOutcome | undefined): boolean {
  return (
    outcome !== undefined &&
    'error' in outcome &&
    outcome.error instanceof StorageError &&
    outcome.error.fault === 'full'
  );
}

const reserveBytes = 8 * 1024 * 1024;
/** The reserve file is written only if this much stays free. Otherwise the next write would need the reserve again. */
const marginBytes = 2 * 1024 * 1024;
/** Node has no error code for an exceeded quota, only the number. */
const outOfSpaceErrors: ReadonlySet<number> = new Set([-constants.errno.ENOSPC, -constants.errno.EDQUOT]);
/** With less free space than this, SQLite cannot open its files. */
const minStartBytes = 1024 * 1024;

/** A file that keeps disk space in reserve and is deleted when the disk is full (src/sync/LIMITS.md, The store). */
export class ReserveFile {
  readonly #path: string;
  readonly #filling: () => Uint8Array;
  #isTaken: boolean;

  /** `filling`: bytes that the file repeats. They must be random, so that a file system cannot compress them. */
  constructor(directory: string, filling: () => Uint8Array) {
    this.#path = pathIn(directory);
    this.#filling = filling;
    const status = lstatSync(this.#path, { throwIfNoEntry: false });
    this.#isTaken = status?.isFile() === true && status.size === reserveBytes;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** Writes the file if there is enough free space. Returns whether the file is there now. */
  take(): boolean {
    if (!this.#isTaken && freeBytes(dirname(this.#path)) >= reserveBytes + marginBytes) {
      this.#isTaken = this.#write();
    }
    return this.#isTaken;
  }

  giveBack(): void {
    rmSync(this.#path, { force: true });
    this.#isTaken = false;
  }

  /** Tries to write the margin: free space alone does not show a quota. */
  isOutOfSpace(): boolean {
    const path = `${this.#path}.trial`;
    const error = fill(path, marginBytes, this.#filling());
    if (error === null) rmSync(path, { force: true });
    return error instanceof Error && 'errno' in error && outOfSpaceErrors.has(Number(error.errno));
  }

  #write(): boolean {
    if (fill(this.#path, reserveBytes, this.#filling()) !== null) return false;
    if (!this.isOutOfSpace()) return true;
    rmSync(this.#path);
    return false;
  }
}

/** Writes a file of a size. On an error, removes the file and returns the error; returns null on success. */
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

/** Deletes the reserve file if the disk is too full to start. */
export function freeSpaceToStart(directory: string): void {
  if (freeBytes(directory) < minStartBytes) rmSync(pathIn(directory), { force: true });
}

/**
 * Opens the store. If that fails for lack of space, deletes the reserve file and tries again: `freeSpaceToStart` does not see
 * a quota.
 */
export function openWithReserve(directory: string, open: () => void): void {
  try {
    open();
  } catch (error) {
    if (!mayBeOutOfSpace(error) || !existsSync(pathIn(directory))) throw error;
    rmSync(pathIn(directory));
    open();
  }
}

function pathIn(directory: string): string {
  return join(directory, stateFiles.reserve);
}

/** Bytes that this user may still write to the file system of a path. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
