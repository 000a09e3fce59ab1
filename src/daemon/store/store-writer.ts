import type { App } from '../../http/app.ts';
import type { LocalLists } from '../../service/lists.ts';
import type { StorageState } from '../../service/status.ts';
import type { Reader } from '../../service/tables.ts';
import type { Writer } from '../../service/writer.ts';

/** The store of a process that has it alone, on this machine. */
export type LocalStore = {
  reader: Reader;
  databasePath: string;
  /** Read in a thread of their own, as are exports, in another. */
  lists: LocalLists;
  exportPage: App['exportPage'];
};

/** The way to write, and how it stands. */
export interface StoreWriter extends Writer {
  /** Rejects when the storage has failed, and nothing more can be written; pending until then. */
  readonly lost: Promise<never>;
  /** How the store can be used, but for damage, which others find. */
  readonly storage: Exclude<StorageState, 'damaged'>;
  /** Whether the oldest write has waited so long that the disk must hang. */
  readonly isStuck: boolean;
  /** Refuses every later write, because the store is damaged. */
  refuse(cause: unknown): void;
}
