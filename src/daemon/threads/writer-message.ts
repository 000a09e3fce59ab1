import type { RoleName } from '../../domain/role.ts';
import { StorageError, type StorageFault, type WriterContext } from '../../service/ports.ts';
import type { Change } from '../../service/tables.ts';
import type { CommandOutcome } from '../../store/sqlite/commit.ts';

/** What the writer's thread is started with. */
export type WriterData = { databasePath: string; role: RoleName };

/**
 * Some writes of one turn of the event loop, as JSON of `WriteRequest[]`: a text goes from thread to thread in half the
 * time that objects take. Times and `keepsHistory` are as they were when they were posted.
 */
export type WritesMessage = { writes: string } & Pick<WriterContext, 'now' | 'elapsed' | 'keepsHistory'>;

/** What the writer's thread receives. */
export type WriterMessage = WritesMessage | 'close';

/** The outcome of a write, sent back. Of an error nothing goes from thread to thread but its fields. */
export type OutcomeMessage =
  | { result: unknown; changes?: readonly Change[] | undefined }
  | { storageFault: StorageFault; detail: string }
  | { error: { message: string; stack: string | undefined } };

/** Whether the disk is full; sent when the thread is ready, and at every change. */
export type DiskSpaceMessage = { isFull: boolean };

/** The duration of a commit, in ms, and its number of writes. */
export type CommitMeasure = { durationMs: number; size: number };

/** Sent after the commit of a batch. */
export type BatchMessage = {
  /** In the order of its writes, as JSON of `OutcomeMessage[]`. */
  outcomes: string;
  /** What happened to operations, in pieces (`piecesOf`). */
  traced: readonly string[];
  commit: CommitMeasure;
  /** Why the storage has failed for good, so that no write is accepted any more; null: it has not. */
  broken: string | null;
};

/** Makes the message of an outcome. */
export function outcomeMessage(outcome: CommandOutcome): OutcomeMessage {
  if ('result' in outcome) return { result: outcome.result, changes: outcome.changes };
  const { error } = outcome;
  if (error instanceof StorageError) return { storageFault: error.fault, detail: textOf(error.cause) };
  return { error: { message: textOf(error), stack: error instanceof Error ? error.stack : undefined } };
}

/** So much of what happened to operations is told at once. */
const tracedAtOnce = 500;

/**
 * What happened to operations in a batch, in order, as JSON of `Traced[]`: one piece in almost all of them. A read may
 * settle as many as wait for its license key, and the server's thread is to answer others between two pieces.
 */
export function piecesOf(outcomes: readonly CommandOutcome[]): string[] {
  const traced = outcomes.flatMap((outcome) => ('result' in outcome ? (outcome.traced ?? []) : []));
  const pieces: string[] = [];
  for (let from = 0; from < traced.length; from += tracedAtOnce) {
    pieces.push(JSON.stringify(traced.slice(from, from + tracedAtOnce)));
  }
  return pieces;
}

/** What an error says, for another thread. */
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
