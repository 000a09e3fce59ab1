import type { Reader } from '../service/tables.ts';
import type { Writer } from '../service/writer.ts';

/** The store of a process that has it alone, on this machine. */
export type LocalStore = { reader: Reader; databasePath: string };

/** The way to write, and how it stands. */
export interface StoreWriter extends Writer {
  /** Rejects when the storage has failed, and nothing more can be written; pending until then. */
  readonly lost: Promise<never>;
  /** Whether the disk is full, and only essential writes are accepted. */
  readonly isFull: boolean;
  /** Whether the oldest write has waited so long that the disk must hang. */
  readonly isStuck: boolean;
  /** Whether the store cannot be reached, and comes back by itself. */
  readonly isAway: boolean;
  /** Refuses every later write, because the store is damaged. */
  refuse(cause: unknown): void;
}
