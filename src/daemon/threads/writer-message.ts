import type { Traced } from '../../domain/operation-trace.ts';
import type { RoleName } from '../../domain/role.ts';
import { StorageError, type StorageFault, type WriterContext } from '../../service/ports.ts';
import type { Change } from '../../service/tables.ts';
import type { WriteRequest } from '../../service/writer.ts';
import type { CommandOutcome } from '../../store/sqlite/commit.ts';

/** What the writer's thread is started with. */
export type WriterData = { databasePath: string; role: RoleName };

/** Some writes of one turn of the event loop; times and `keepsHistory` are as they were when they were posted. */
export type WritesMessage = { writes: readonly WriteRequest[] } & Pick<
  WriterContext,
  'now' | 'steady' | 'keepsHistory'
>;

/** What the writer's thread receives. */
export type WriterMessage = WritesMessage | 'close';

/** The outcome of a write, sent back. The class of an error is lost between threads, so its fields are sent. */
export type OutcomeMessage =
  | { result: unknown; traced: readonly Traced[] | undefined; changes: readonly Change[] | undefined }
  | { storageFault: StorageFault; detail: string }
  | { error: unknown };

/** Whether the disk is full; sent when the thread is ready, and at every change. */
export type DiskSpaceMessage = { isFull: boolean };

/** The duration of a commit, in ms, and its number of writes. */
export type CommitMeasure = { durationMs: number; size: number };

/** The outcomes of a batch in the order of its writes, sent after its commit. */
export type BatchMessage = {
  outcomes: readonly OutcomeMessage[];
  commit: CommitMeasure;
  /** Whether the storage has failed for good: no write is accepted any more. */
  isBroken: boolean;
};

/** Makes the message of an outcome. */
export function outcomeMessage(outcome: CommandOutcome): OutcomeMessage {
  if ('result' in outcome) {
    const { result, traced, changes } = outcome;
    return { result, traced, changes };
  }
  const { error } = outcome;
  if (error instanceof StorageError) {
    const { cause } = error;
    const detail = cause instanceof Error ? cause.message : String(cause);
    return { storageFault: error.fault, detail };
  }
  return { error };
}

/** The error in a message; null when it is a result. */
export function errorOf(message: OutcomeMessage): unknown {
  if ('storageFault' in message) return new StorageError(message.storageFault, new Error(message.detail));
  return 'error' in message ? message.error : null;
}
