import type { WriteOptions } from './ports.ts';
import type { AuthorityTransaction, Transaction } from './tables.ts';
import type * as useCases from './use-cases.ts';

type UseCases = typeof useCases;

/** The name of a use case that writes. */
export type UseCaseName = keyof UseCases;
export type CommandOf<Name extends UseCaseName> = Parameters<UseCases[Name]>[1];
export type CommandResult<Name extends UseCaseName> = Awaited<ReturnType<UseCases[Name]>>;

/**
 * A use case with an `AuthorityTransaction` runs on any database. A use case that needs an agent's tables, or needs
 * them synchronously, runs only on a local store.
 */
export type TransactionOf<Name extends UseCaseName> = [UseCases[Name]] extends [
  (transaction: AuthorityTransaction, ...rest: never) => unknown,
]
  ? AuthorityTransaction
  : Transaction;

/** The message to the writer's thread. */
export type WriteRequest<Name extends UseCaseName = UseCaseName> = {
  name: Name;
  command: CommandOf<Name>;
  writeOptions: Partial<WriteOptions>;
};

/** Runs each write use case in its own transaction; the promise resolves after the commit. */
export interface Writer {
  /**
   * Rejects with `StorageError` if the write failed. A refusal writes nothing. Under an idempotency key, the first
   * successful result is stored and returned again.
   */
  write<Name extends UseCaseName>(
    name: Name,
    command: CommandOf<Name>,
    writeOptions?: Partial<WriteOptions>,
  ): Promise<CommandResult<Name>>;
}
