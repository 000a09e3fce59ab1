import type { Traced } from '../../domain/outbox/operation-trace.ts';
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
export type WritesMessage = { writes: string } & Pick<WriterContext, 'now' | 'steady' | 'keepsHistory'>;

/** What the writer's thread receives. */
export type WriterMessage = WritesMessage | 'close';

/** The outcome of a write, sent back. Of an error nothing goes from thread to thread but its fields. */
export type OutcomeMessage =
  | { result: unknown; traced?: readonly Traced[]; changes?: readonly Change[] }
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
  commit: CommitMeasure;
  /** Why the storage has failed for good, so that no write is accepted any more; null: it has not. */
  broken: string | null;
};

/** Makes the message of an outcome. */
export function outcomeMessage(outcome: CommandOutcome): OutcomeMessage {
  if ('result' in outcome) return outcome;
  const { error } = outcome;
  if (error instanceof StorageError) return { storageFault: error.fault, detail: textOf(error.cause) };
  return { error: { message: textOf(error), stack: error instanceof Error ? error.stack : undefined } };
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
