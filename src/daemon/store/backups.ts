import { once } from 'node:events';
import { constants, promises as files, rmSync, type ReadStream } from 'node:fs';
import { join } from 'node:path';
import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import type { App, Backup } from '../../http/app.ts';
import { type Clock, StorageError } from '../../service/ports.ts';
import { stateFiles } from '../../store/sqlite/files/state-directory.ts';
import { startWorker } from '../threads/start-worker.ts';
import { errorOf, type OutcomeMessage } from '../threads/writer-message.ts';
import type { LocalStore } from './opened-store.ts';

/** A reader who takes nothing for this long is given up: the next one waits for it, in ms. */
const stalledMs = 60_000;
/** How often that is looked at, in ms. */
const lookMs = 5_000;

/** How copies of a store are made on request: of one on this machine, in a thread; a database has means of its own. */
export function backupsOf(
  local: LocalStore | null,
  stateDir: string,
  clock: Clock,
  lifetime: AbortSignal,
): App['backup'] {
  if (local === null) {
    const advice = 'The records are in PostgreSQL: use pg_dump.';
    return () => Promise.resolve(refuse('backed_up_by_the_database', advice));
  }
  const { databasePath } = local;
  const copyTo = (path: string, signal: AbortSignal): Promise<void> =>
    backUpInThread({ databasePath, path }, signal);
  const backups = new Backups(stateDir, copyTo, clock, lifetime);
  return (signal) => backups.make(signal);
}

/** Makes consistent copies of the store, one at a time, and leaves nothing of them behind. */
export class Backups {
  readonly #draft: string;
  readonly #copyTo: (path: string, signal: AbortSignal) => Promise<void>;
  readonly #clock: Clock;
  readonly #lifetime: AbortSignal;
  #isRunning = false;

  /** `lifetime` cuts off whoever still reads one. */
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
    // Of a process that was killed while it made one.
    this.#removeDraft();
  }

  /** Makes a copy, which runs until its content has been read or destroyed; the signal destroys it. */
  async make(signal: AbortSignal): Promise<Result<Backup>> {
    if (this.#isRunning) return refuse('backup_running', 'Wait until it is done: one is made at a time.');
    this.#isRunning = true;
    const ended = new AbortController();
    const end = (): void => {
      if (!ended.signal.aborted) this.#isRunning = false;
      ended.abort();
    };
    try {
      const backup = await this.#open(AbortSignal.any([signal, this.#lifetime]));
      // An early end is what its reader wanted, and no news.
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
      // Ended early only by the signal, which the loop looks at.
      await this.#clock.sleep(lookMs, signal).catch(() => undefined);
      quietMs = content.bytesRead === bytesRead ? quietMs + lookMs : 0;
      ({ bytesRead } = content);
      if (quietMs >= stalledMs) content.destroy(new Error('the reader of a backup has stalled'));
    }
  }

  async #open(signal: AbortSignal): Promise<Backup & { content: ReadStream }> {
    try {
      await this.#copyTo(this.#draft, signal);
      signal.throwIfAborted();
      const file = await files.open(this.#draft, constants.O_RDONLY | constants.O_NOFOLLOW);
      const { size } = await file.stat();
      // Told where it ends, it ends with its last byte: whoever has read that may ask for the next copy.
      return { sizeBytes: size, content: file.createReadStream({ signal, end: size - 1 }) };
    } finally {
      // What is open can still be read, and is gone for good once it is closed, also by a crash.
      this.#removeDraft();
    }
  }

  #removeDraft(): void {
    for (const path of [this.#draft, `${this.#draft}-journal`]) rmSync(path, { force: true });
  }
}

/** Which database is copied, and to which new file. */
export type BackupOrder = { databasePath: string; path: string };

/** Copies a database in a thread of its own, which may take long; rejects when the signal comes first. */
export async function backUpInThread(order: BackupOrder, signal: AbortSignal): Promise<void> {
  const worker = startWorker('backup', order);
  try {
    const [message] = (await once(worker, 'message', { signal })) as [OutcomeMessage];
    const error = errorOf(message);
    if (error instanceof StorageError) throw error;
    if (error !== null) throw new Error('the copy failed', { cause: error });
  } finally {
    // Nothing of it writes any more when this is done.
    await worker.terminate();
  }
}
