import { StorageError, type StorageFault } from '../../service/ports.ts';
import type { WriteRequest } from '../../service/writer.ts';

/** A write on its way to the writer's thread; the times are the clock's when it was posted. */
export type WriteMessage = { id: number; request: WriteRequest; now: number; steady: number };

/** Everything that the writer's thread is sent. */
export type WriterMessage = WriteMessage | 'close';

/** What became of a write, on its way back. An error class does not survive the way, so its facts travel. */
export type OutcomeMessage =
  | { id: number; result: unknown }
  | { id: number; storageFault: StorageFault; detail: string }
  | { id: number; error: unknown };

/** Sent when the thread is ready, and whenever it changes: whether only what is essential is written. */
export type RoomMessage = { isFull: boolean };

/** How long a commit took, in ms, and how many writes it held. */
export type CommitMeasure = { durationMs: number; size: number };

/** The answers to one batch, sent after its commit. */
export type BatchMessage = {
  outcomes: readonly OutcomeMessage[];
  commit: CommitMeasure;
  /** The storage failed for good: no write is taken any more. */
  isBroken: boolean;
};

/** The message for an outcome. */
export function outcomeMessage(
  id: number,
  outcome: { result: unknown } | { error: unknown },
): OutcomeMessage {
  if ('result' in outcome) return { id, result: outcome.result };
  const { error } = outcome;
  if (error instanceof StorageError) {
    const { cause } = error;
    const detail = cause instanceof Error ? cause.message : String(cause);
    return { id, storageFault: error.fault, detail };
  }
  return { id, error };
}

/** The error that an outcome's message stands for; null when it is none. */
export function errorOf(message: OutcomeMessage): unknown {
  if ('storageFault' in message) return new StorageError(message.storageFault, new Error(message.detail));
  return 'error' in message ? message.error : null;
}
