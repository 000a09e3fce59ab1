import { failWith } from '../../../domain/problem/problem.ts';
import {
  StorageError,
  type Clock,
  type Idempotency,
  type Random,
  type WriterContext,
} from '../../../service/ports.ts';
import type { AuthorityTransaction, Awaitable } from '../../../service/tables.ts';
import type { CommandResult, UseCaseName, WriteRequest, Writer } from '../../../service/writer.ts';
import { collectEvents } from '../../../store/changes.ts';
import { CommitInDoubt, type Connection } from './connection.ts';
import type { Database } from './database.ts';
import { GroupedChanges, runInGroup } from './grouped-changes.ts';
import { KeyInUse, sqlState, sqlStates, storageErrorOf, transactionFault } from './faults.ts';
import {
  maintenance,
  isAuthorityUseCase,
  prepareLocks,
  tryAdvisory,
  type AuthorityUseCase,
  type LockPlan,
} from './locks.ts';
import type { BoundStatement, Statement } from './statements.ts';

export type PostgresWriterOptions = {
  run: (
    transaction: AuthorityTransaction,
    request: WriteRequest<AuthorityUseCase>,
    context: WriterContext,
  ) => Awaitable<unknown>;
  isFailure: (result: unknown) => boolean;
  /** Called for each attempt, with the time of the database (epoch ms) after the locks; null: not queried. */
  context: (databaseNow: number | null) => WriterContext;
  clock: Pick<Clock, 'sleep' | 'monotonic'>;
  random: Pick<Random, 'fraction'>;
  /** Called before the response of a write that has changed, or may have changed, credentials that nodes cache. */
  onCredentialsChanged: () => unknown;
  /** Called when a write is repeated. */
  onRepeat: (reason: RepeatReason) => unknown;
  /** Called after each attempt, with the wait for a connection and the duration, in ms. */
  onTried: (measure: TransactionMeasure) => unknown;
  /** A monotonic time in ms, with fractions. */
  timer: () => number;
};

/** Why a write is repeated: a conflict with another write, no connection, or an unknown outcome. */
export type RepeatReason = 'conflict' | 'away' | 'doubt';

export type TransactionMeasure = { waitedMs: number; durationMs: number };

/** The limits for repeating a write. The client that waits for the response has a deadline, too. */
const maxAttempts = 6;
const maxRepeatMs = 5_000;
/** The wait before the second attempt, in ms. Each wait is twice as long as the previous wait. */
const firstWaitMs = 15;

/**
 * Whether a use case only changes the count of one license; these are group-committed. An event belongs to the
 * transaction of a license that is enabled or disabled.
 */
function isGrouped({ name, command, writeOptions }: WriteRequest<AuthorityUseCase>): boolean {
  // Nothing may show any more whether a repeated change was carried out.
  if (writeOptions.idempotency?.keyed?.isRepeat === true) return false;
  return name === 'changeLicense' && 'trigger' in command && isCount(command.trigger);
}

function isCount(trigger: unknown): boolean {
  return trigger === 'usage' || trigger === 'decrease';
}

/** The writer of an authority on PostgreSQL: each write is a transaction, on any free connection. */
export class PostgresWriter implements Writer {
  readonly #database: Database;
  readonly #options: PostgresWriterOptions;
  readonly #locksOf: LockPlan;
  readonly #group: GroupedChanges;
  /** The tables for grouped use cases without an idempotency key. They use no other table. */
  readonly #unkeyed: AuthorityTransaction;
  readonly #maintenance: Statement;
  /** The number of requests that may wait for their idempotency keys. */
  #waiting = 0;

  constructor(database: Database, options: PostgresWriterOptions) {
    this.#database = database;
    this.#options = options;
    this.#locksOf = prepareLocks(database.names);
    // Nodes of older versions name the lock so.
    this.#maintenance = tryAdvisory(database.names, 'housework');
    this.#group = new GroupedChanges(database.names, (transact) => this.#lend(transact));
    const licenses: Pick<AuthorityTransaction['licenses'], 'change'> = {
      change: (change) => this.#group.change(change),
    };
    this.#unkeyed = { licenses, events: collectEvents() } as AuthorityTransaction;
  }

  /**
   * Rejects with `StorageError`. Repeats a write that was certainly not committed, and a write with an unknown outcome if
   * it has an idempotency key, which shows whether it was committed.
   */
  async write<Name extends UseCaseName>(
    name: Name,
    command: WriteRequest<Name>['command'],
    writeOptions: WriteRequest['writeOptions'] = {},
  ): Promise<CommandResult<Name>> {
    if (!isAuthorityUseCase(name)) throw new Error(`an authority does not write ${name}`);
    // The compiler cannot infer the types of the command and the result from the name.
    const request = { name, command, writeOptions } as unknown as WriteRequest<AuthorityUseCase>;
    return (await this.#repeat(request)) as CommandResult<Name>;
  }

  async #repeat(request: WriteRequest<AuthorityUseCase>): Promise<unknown> {
    const { clock, random } = this.#options;
    const endsAt = clock.monotonic() + maxRepeatMs;
    let isInDoubt = false;
    let isAlwaysTaken = true;
    for (let count = 1; ; count += 1) {
      try {
        return await this.#try(request);
      } catch (error) {
        const reason = error instanceof CommitInDoubt ? 'doubt' : reasonToRepeat(error);
        isInDoubt ||= reason === 'doubt';
        isAlwaysTaken &&= sqlState(error) === sqlStates.uniqueViolation;
        const isUnnamed = (request.writeOptions.idempotency ?? null) === null;
        const isLast = count === maxAttempts || clock.monotonic() >= endsAt || (isInDoubt && isUnnamed);
        if (reason === null || isLast)
          throw isInDoubt
            ? new StorageError('unknown', error)
            : lastError(error, isAlwaysTaken && count === maxAttempts);
        this.#options.onRepeat(reason);
      }
      const waitMs = firstWaitMs * 2 ** (count - 1);
      await clock.sleep(waitMs * (0.5 + random.fraction()), new AbortController().signal);
    }
  }

  async #try(request: WriteRequest<AuthorityUseCase>): Promise<unknown> {
    if (!isGrouped(request)) return await this.#alone(request);
    const { idempotency = null } = request.writeOptions;
    const { run, context } = this.#options;
    if (idempotency === null) return await run(this.#unkeyed, request, context(null));
    const done = await runInGroup(this.#group, idempotency, (tables) => run(tables, request, context(null)));
    return done === null ? await this.#alone(request) : done.result;
  }

  /** Runs in its own transaction. */
  async #alone(request: WriteRequest<AuthorityUseCase>): Promise<unknown> {
    const { idempotency = null } = request.writeOptions;
    return await this.#lend(async (connection) => {
      const locks = this.#locksOf(request.name, request.command);
      const databaseNow =
        idempotency === null
          ? await connection.begin(null, locks)
          : await this.#claim(connection, idempotency, locks);
      return databaseNow === null ? keyInUse() : await this.#transact(connection, request, databaseNow);
    });
  }

  async #lend<Value>(transact: (connection: Connection) => Promise<Value>): Promise<Value> {
    const { timer, onTried } = this.#options;
    const requestedAt = timer();
    return await this.#database.lend(async (connection) => {
      const startedAt = timer();
      try {
        return await transact(connection);
      } finally {
        onTried({ waitedMs: startedAt - requestedAt, durationMs: timer() - startedAt });
      }
    });
  }

  /**
   * Begins a transaction that locks an idempotency key; null: another request has the key. At most half of the
   * connections may wait for keys, so that other requests still get a connection, even if the clients of another node
   * repeat all their waiting requests here.
   */
  async #claim(
    connection: Connection,
    idempotency: Idempotency,
    locks: readonly BoundStatement[],
  ): Promise<number | null> {
    const waits = this.#waiting < Math.floor(this.#database.size / 2);
    if (waits) this.#waiting += 1;
    try {
      return await connection.begin({ ...idempotency, waits }, locks);
    } catch (error) {
      if (!(error instanceof KeyInUse)) throw error;
      await connection.rollback();
      return null;
    } finally {
      if (waits) this.#waiting -= 1;
    }
  }

  /** Whether no other node is doing maintenance. */
  async #isFirst(connection: Connection): Promise<boolean> {
    const [row] = await connection.rows(this.#maintenance, []);
    return row?.['acquired'] === true;
  }

  async #transact(
    connection: Connection,
    request: WriteRequest<AuthorityUseCase>,
    databaseNow: number,
  ): Promise<unknown> {
    const { run, isFailure, context, onCredentialsChanged } = this.#options;
    const leftToOthers = maintenance[request.name];
    if (leftToOthers !== undefined && !(await this.#isFirst(connection))) {
      await connection.rollback();
      return leftToOthers;
    }
    const result = await run(connection.transaction, request, context(databaseNow));
    if (isFailure(result)) {
      await connection.rollback();
      return result;
    }
    try {
      await connection.commit();
    } finally {
      // Even if the outcome is unknown.
      if (connection.changesCredentials) onCredentialsChanged();
    }
    return result;
  }
}

function reasonToRepeat(error: unknown): RepeatReason | null {
  const fault = transactionFault(error);
  if (fault === 'repeat') return 'conflict';
  return fault === 'away' ? 'away' : null;
}

/** The error after the last attempt. A unique violation in every attempt is a bug of ours. */
function lastError(error: unknown, isAlwaysTaken: boolean): unknown {
  return isAlwaysTaken ? error : storageErrorOf(error);
}

function keyInUse(): ReturnType<typeof failWith> {
  return failWith('idempotency_key_in_use', 'The first request with this key has not been answered yet.');
}
