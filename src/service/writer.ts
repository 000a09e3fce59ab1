import type { WriteOptions } from './ports.ts';
import type { AuthorityTransaction, Transaction } from './tables.ts';
import type * as useCases from './use-cases.ts';

type UseCases = typeof useCases;

/** What a write is asked for by. */
export type UseCaseName = keyof UseCases;
export type CommandOf<Name extends UseCaseName> = Parameters<UseCases[Name]>[1];
export type CommandResult<Name extends UseCaseName> = Awaited<ReturnType<UseCases[Name]>>;

/**
 * What a use case of this name is run in: one that keeps to the tables of an authority runs on any engine;
 * one that needs an agent's tables, or an answer at once, on a store on this machine.
 */
export type TransactionOf<Name extends UseCaseName> = [UseCases[Name]] extends [
  (transaction: AuthorityTransaction, ...rest: never) => unknown,
]
  ? AuthorityTransaction
  : Transaction;

/** A write as it travels to the writer's thread. */
export type WriteRequest<Name extends UseCaseName = UseCaseName> = {
  name: Name;
  command: CommandOf<Name>;
  writeOptions: Partial<WriteOptions>;
};

/** Runs write use cases whole, each in a transaction; the promise resolves after the commit. */
export interface Writer {
  /**
   * Rejects with `StorageError` when nothing was written. A result that is a refusal has written nothing.
   * Under an idempotency key the first successful result is kept and given again. An act of a person is
   * put on record with whoever asked for it.
   */
  write<Name extends UseCaseName>(
    name: Name,
    command: CommandOf<Name>,
    writeOptions?: Partial<WriteOptions>,
  ): Promise<CommandResult<Name>>;
}
