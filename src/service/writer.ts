import type * as useCases from './use-cases.ts';
import { features } from '../features.ts';
import type { WriteOptions, Log } from './ports.ts';
import type { AuthorityTransaction, Transaction, Change, Awaitable } from './tables.ts';

/** The use cases of the core. */
export type CoreUseCases = typeof useCases;

/** All use cases that write. A feature adds its own use cases to this interface. */
export interface UseCases extends CoreUseCases {}

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

type Listener = (changes: readonly Change[]) => void;

/** Announces what commits change, to everything that caches what was read from the store. */
export class Announcer {
  readonly #listeners = new Set<Listener>();

  /** Calls the listener at each announcement. Returns a function that ends the subscription. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Call it after a commit and before its response is sent. */
  announce(changes: readonly Change[]): void {
    for (const listener of this.#listeners) listener(changes);
  }
}

/**
 * Runs the steps after a commit. If a step fails, the change stays: the failure is logged, and the caller gets
 * `otherwise`.
 */
export async function afterCommit<Value, Otherwise = Value>(
  log: Pick<Log, 'error'>,
  steps: () => Awaitable<Value>,
  otherwise: Otherwise,
): Promise<Value | Otherwise> {
  try {
    return await steps();
  } catch (error) {
    log.error({ err: error }, 'a change was committed, but a later step failed');
    return otherwise;
  }
}

/*
 * These writes run even if the disk is full: startup, recording upstream responses, and clean-up. Changes that callers
 * request are refused.
 */
const essential: ReadonlySet<UseCaseName> = new Set<UseCaseName>([
  'startAuthority',
  'startAgent',
  'startHolder',
  'markTime',
  'correctDates',
  'pruneIdempotency',
  'pruneOperations',
  'pruneHistory',
  'pruneOldCredentials',
  'pruneActivations',
  'endActivationAttempt',
  'planStep',
  'confirmFollowed',
  'resumeDelivered',
  'postpone',
  'endOutage',
  'recordResponse',
  'recordRead',
  'storeRetryAfter',
  'recordCouponResponse',
  'recordRedemptionResponse',
  'recordCouponListing',
  'bindUpstream',
  'storeFinalResponse',
  ...features.flatMap(({ useCases: own }) => own?.essential ?? []),
]);

/** Whether a write is accepted while the disk is full (src/sync/LIMITS.md, The store). */
export function isEssential(name: UseCaseName): boolean {
  return essential.has(name);
}
