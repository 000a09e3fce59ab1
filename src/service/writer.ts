import type { WriteOptions } from './ports.ts';
import type { AuthorityTransaction, Transaction } from './tables.ts';
import type * as useCases from './use-cases.ts';

type UseCases = typeof useCases;

/** The name of a use case that writes. */
export type UseCaseName = keyof UseCases;
export type CommandOf<Name extends UseCaseName> = Parameters<UseCases[Name]>[1];
export type CommandResult<Name extends UseCaseName> = Awaited<ReturnType<UseCases[Name]>>;

/**
 * The transaction that a use case needs: one over an authority's tables runs on any engine; one that needs an
 * agent's tables, or needs them synchronously, runs on a store on this machine.
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
   * Rejects with `StorageError` when nothing was written. A refusal has written nothing.
   * Under an idempotency key the first successful result is stored and returned again. What a person does
   * is audited with the actor.
   */
  write<Name extends UseCaseName>(
    name: Name,
    command: CommandOf<Name>,
    writeOptions?: Partial<WriteOptions>,
  ): Promise<CommandResult<Name>>;
}
