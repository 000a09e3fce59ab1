import { once } from 'node:events';
import { createReadStream, fstatSync, rmSync, type ReadStream } from 'node:fs';
import { join } from 'node:path';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import type { App, Backup } from '../../http/app.ts';
import { type Clock, StorageError } from '../../service/ports.ts';
import { openOwnFile } from '../../store/sqlite/files/private-file.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import { pause } from '../system/clock.ts';
import { startWorker, errorOf, type OutcomeMessage } from '../threads/worker.ts';
import type { FileTask } from '../threads/file-worker.ts';
import { minuteMs } from '../../domain/time.ts';

/** A backup whose client reads nothing for this long is ended, in ms: the next backup waits for it. */
const stalledMs = minuteMs;
/** How often stalled clients are checked, in ms. */
const checkMs = 5_000;

/** Backups of a store on this machine, copied in a thread. */
export function backupsOf(
  databasePath: string,
  stateDir: string,
  clock: Clock,
  lifetime: AbortSignal,
): App['backup'] {
  const copyTo = (path: string, signal: AbortSignal): Promise<void> =>
    backUpInThread({ databasePath, path }, signal);
  const backups = new Backups(stateDir, copyTo, clock, lifetime);
  return (signal) => backups.make(signal);
}

/** Creates consistent copies of the store, one at a time, and removes their files. */
export class Backups {
  readonly #draft: string;
  readonly #copyTo: (path: string, signal: AbortSignal) => Promise<void>;
  readonly #clock: Clock;
  readonly #lifetime: AbortSignal;
  #isRunning = false;

  /** `lifetime` ends a backup that is still read. */
  constructor(
    stateDir: string,
    copyTo: (path: string, signal: AbortSignal) => Promise<void>,
    clock: Clock,
    lifetime: AbortSignal,
  ) {
    this.#draft = join(stateDir, stateFiles.backup);
    this.#copyTo = copyTo;
    this.#clock = clock;
    this.#lifetime = lifetime;
    // Left by a process that was killed during a backup.
    this.#removeDraft();
  }

  /** Starts a backup, which runs until its content is read or destroyed. The signal destroys the content. */
  async make(signal: AbortSignal): Promise<Result<Backup>> {
    if (this.#isRunning) return failWith('backup_running', 'Wait until it is done: one is made at a time.');
    this.#isRunning = true;
    const ended = new AbortController();
    const end = (): void => {
      if (!ended.signal.aborted) this.#isRunning = false;
      ended.abort();
    };
    try {
      const backup = await this.#open(AbortSignal.any([signal, this.#lifetime]));
      // The client ended the backup early: not an error.
      backup.content
        .once('end', end)
        .once('close', end)
        .on('error', () => undefined);
      void this.#endStalled(backup.content, ended.signal);
      return done(backup);
    } catch (error) {
      end();
      throw error;
    }
  }

  async #endStalled(content: ReadStream, signal: AbortSignal): Promise<void> {
    let [bytesRead, quietMs] = [content.bytesRead, 0];
    while (!signal.aborted) {
      await pause(this.#clock, checkMs, signal);
      quietMs = content.bytesRead === bytesRead ? quietMs + checkMs : 0;
      ({ bytesRead } = content);
      if (quietMs >= stalledMs) content.destroy(new Error('the reader of a backup has stalled'));
    }
  }

  async #open(signal: AbortSignal): Promise<Backup & { content: ReadStream }> {
    try {
      await this.#copyTo(this.#draft, signal);
      signal.throwIfAborted();
      const file = openOwnFile(this.#draft);
      const { size } = fstatSync(file);
      // With `end`, the stream ends at its last byte, so that its reader can start the next backup at once.
      return {
        sizeBytes: size,
        content: createReadStream('', { fd: file, signal, start: 0, end: size - 1 }),
      };
    } finally {
      // The open file stays readable, and disappears when it is closed, also by a crash.
      this.#removeDraft();
    }
  }

  #removeDraft(): void {
    for (const path of [this.#draft, `${this.#draft}-journal`]) rmSync(path, { force: true });
  }
}

/** Copies a database in its own thread. Rejects when the signal aborts. */
export async function backUpInThread(
  { databasePath, path }: { databasePath: string; path: string },
  signal: AbortSignal,
): Promise<void> {
  const worker = startWorker('file', { databasePath, copyTo: path } satisfies FileTask);
  try {
    const [message] = (await once(worker, 'message', { signal })) as [OutcomeMessage];
    const error = errorOf(message);
    if (error instanceof StorageError) throw error;
    if (error !== null) throw new Error('the copy failed', { cause: error });
  } finally {
    // After this, the thread writes no more.
    await worker.terminate();
  }
}
