import type { NewEvent } from '../domain/event.ts';
import type { Context } from './ports.ts';
import type { AuthorityTransaction, Awaitable, Reader } from './tables.ts';

/** Keeps the events of use cases for other systems. */
export type EventKeeper = {
  /** Whether anybody gets events. */
  isWanted(reader: Reader): boolean;
  /** Stores the events of a use case, in its transaction. */
  store(
    transaction: AuthorityTransaction,
    events: readonly NewEvent[],
    context: Pick<Context, 'now' | 'random'>,
  ): Awaitable<void>;
};
