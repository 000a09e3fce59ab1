import { getAsset, isSea } from 'node:sea';
import { Worker } from 'node:worker_threads';
import type { RoleName } from '../../domain/role.ts';
import { StorageError, type StorageFault, type WriterContext } from '../../service/ports.ts';
import type { Change } from '../../service/tables.ts';
import type { CommandOutcome } from '../../store/sqlite/commit.ts';

/** The names of the threads, which the system shows. */
type ThreadName = 'file' | 'reading' | 'writer';

/** Starts a thread. Its code is a file of this folder, or an asset of the single executable. */
export function startWorker(name: ThreadName, workerData: unknown): Worker {
  const file = `${name}-worker`;
  // Not a `data:` URL: to decode it, Node loads V8's optimizing compiler, which takes 6 MiB.
  if (isSea()) return new Worker(getAsset(`${file}.js`, 'utf8'), { name, workerData, eval: true });
  // In the npm package, the code of threads is in the same folder, with another extension.
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
  return new Worker(new URL(`./${file}${extension}`, import.meta.url), { name, workerData });
}

/** The start data of the writer thread. */
export type WriterData = { databasePath: string; role: RoleName };

/** Writes of one turn of the event loop, as JSON of `WriteRequest[]`: a string is sent in half the time of objects. */
export type WritesMessage = { writes: string } & Pick<WriterContext, 'now' | 'monotonic' | 'recordsHistory'>;

/** A message to the writer thread. */
export type WriterMessage = WritesMessage | 'close';

/** The outcome of a write. Only the fields of an error are sent to another thread. */
export type OutcomeMessage =
  | { result: unknown; changes?: readonly Change[] | undefined }
  | { storageFault: StorageFault; detail: string }
  | { error: { message: string; stack: string | undefined } };

/** Whether the disk is full: sent when the thread is ready, and at every change. */
export type DiskSpaceMessage = { isFull: boolean };

/** The duration of a commit, in ms, and its number of writes. */
export type CommitMeasure = { durationMs: number; size: number };

/** Sent after the commit of a batch. */
export type BatchMessage = {
  /** In the order of its writes, as JSON of `OutcomeMessage[]`. */
  outcomes: string;
  /** The steps of operations, in pieces (`piecesOf`). */
  traced: readonly string[];
  commit: CommitMeasure;
  /** Why the storage failed for good; null: it works. */
  broken: string | null;
};

/** Makes the message of an outcome. */
export function outcomeMessage(outcome: CommandOutcome): OutcomeMessage {
  if ('result' in outcome) return { result: outcome.result, changes: outcome.changes };
  const { error } = outcome;
  if (error instanceof StorageError) return { storageFault: error.fault, detail: textOf(error.cause) };
  return { error: { message: textOf(error), stack: error instanceof Error ? error.stack : undefined } };
}

/** How many steps of operations are logged at once. */
const tracedPerPiece = 500;

/** The steps of operations in a batch as JSON of `Traced[]`, in pieces: the server thread answers requests in between. */
export function piecesOf(outcomes: readonly CommandOutcome[]): string[] {
  const traced = outcomes.flatMap((outcome) => ('result' in outcome ? (outcome.traced ?? []) : []));
  const pieces: string[] = [];
  for (let from = 0; from < traced.length; from += tracedPerPiece) {
    pieces.push(JSON.stringify(traced.slice(from, from + tracedPerPiece)));
  }
  return pieces;
}

/** The message of an error, for another thread. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The error in a message; null when it is a result. */
export function errorOf(message: OutcomeMessage): unknown {
  if ('storageFault' in message) return new StorageError(message.storageFault, new Error(message.detail));
  if (!('error' in message)) return null;
  const { error } = message;
  return Object.assign(new Error(error.message), { stack: error.stack });
}
