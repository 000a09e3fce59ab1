import { refuse } from '../../domain/problem/problem.ts';
import {
  StorageError,
  type Clock,
  type Idempotency,
  type Random,
  type WriterContext,
} from '../../service/ports.ts';
import type { AuthorityTransaction, Awaitable } from '../../service/tables.ts';
import type { CommandResult, UseCaseName, WriteRequest, Writer } from '../../service/writer.ts';
import { CommitInDoubt, type Connection } from './connection.ts';
import type { Database } from './database.ts';
import { GroupedChanges, runTogether } from './grouped-changes.ts';
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

/** How the writer runs use cases. */
export type PostgresRun = {
  run: (
    transaction: AuthorityTransaction,
    request: WriteRequest<AuthorityUseCase>,
    context: WriterContext,
  ) => Awaitable<unknown>;
  isRefusal: (result: unknown) => boolean;
  /** Called for each transaction that is tried, with the time of the database (epoch ms) after the locks; null: it was not asked. */
  context: (databaseNow: number | null) => WriterContext;
  clock: Pick<Clock, 'sleep' | 'elapsed'>;
  random: Pick<Random, 'draw'>;
  /** Called before the answer of a write that has changed, or may have, what nodes remember of credentials. */
  onCredentialsChanged: () => unknown;
  /** A write is begun again. */
  onRepeat: (reason: RepeatReason) => unknown;
  /** A transaction was tried: how long it waited for a connection, and how long it took, in ms. */
  onTried: (measure: TransactionMeasure) => unknown;
  /** Ms, with fractions, since whenever. */
  timer: () => number;
};

/** Why a write is begun again: another was before it, the database was away, or nobody knew whether it was done. */
export type RepeatReason = 'conflict' | 'away' | 'doubt';

export type TransactionMeasure = { waitedMs: number; durationMs: number };

/** How often a write is begun at most, and for how long, in ms: whoever waits for its answer has a deadline too. */
const tries = 6;
const triesMs = 5_000;
/** How long the first wait before another try is, in ms; each is twice as long. */
const firstWaitMs = 15;

/** Those that are nothing but one change of a license: many of them are committed together. */
const grouped: ReadonlySet<AuthorityUseCase> = new Set<AuthorityUseCase>(['changeLicense']);

/** The writer of an authority on PostgreSQL: each write is a transaction, on any free connection. */
export class PostgresWriter implements Writer {
  readonly #database: Database;
  readonly #how: PostgresRun;
  readonly #locksOf: LockPlan;
  readonly #group: GroupedChanges;
  /** What those of `grouped` are given without an idempotency key: they use nothing else. */
  readonly #unkeyed: AuthorityTransaction;
  readonly #maintenance: Statement;
  /** How many requests wait for their idempotency keys, or would wait. */
  #waiting = 0;

  constructor(database: Database, how: PostgresRun) {
    this.#database = database;
    this.#how = how;
    this.#locksOf = prepareLocks(database.names);
    this.#maintenance = tryAdvisory(database.names, 'housework');
    this.#group = new GroupedChanges(database.names, (transact) => this.#lend(transact));
    const licenses: Pick<AuthorityTransaction['licenses'], 'change'> = {
      change: (change) => this.#group.change(change),
    };
    this.#unkeyed = { licenses } as AuthorityTransaction;
  }

  /**
   * Rejects with `StorageError`. What was surely not done is begun again some times, and so is what is in doubt under
   * an idempotency key, which tells whether it was done.
   */
  async write<Name extends UseCaseName>(
    name: Name,
    command: WriteRequest<Name>['command'],
    writeOptions: WriteRequest['writeOptions'] = {},
  ): Promise<CommandResult<Name>> {
    if (!isAuthorityUseCase(name)) throw new Error(`an authority does not write ${name}`);
    // The compiler cannot see that a name and its command, or its result, belong together.
    const request = { name, command, writeOptions } as unknown as WriteRequest<AuthorityUseCase>;
    return (await this.#repeat(request)) as CommandResult<Name>;
  }

  async #repeat(request: WriteRequest<AuthorityUseCase>): Promise<unknown> {
    const { clock, random } = this.#how;
    const endsAt = clock.elapsed() + triesMs;
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
        const isLast = count === tries || clock.elapsed() >= endsAt || (isInDoubt && isUnnamed);
        if (reason === null || isLast)
          throw isInDoubt
            ? new StorageError('unknown', error)
            : lastError(error, isAlwaysTaken && count === tries);
        this.#how.onRepeat(reason);
      }
      const waitMs = firstWaitMs * 2 ** (count - 1);
      await clock.sleep(waitMs * (0.5 + random.draw()), new AbortController().signal);
    }
  }

  async #try(request: WriteRequest<AuthorityUseCase>): Promise<unknown> {
    if (!grouped.has(request.name)) return await this.#alone(request);
    const { idempotency = null } = request.writeOptions;
    const { run, context } = this.#how;
    if (idempotency === null) return await run(this.#unkeyed, request, context(null));
    const done = await runTogether(this.#group, idempotency, (tables) => run(tables, request, context(null)));
    return done === null ? await this.#alone(request) : done.result;
  }

  /** In a transaction of its own. */
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
    const { timer, onTried } = this.#how;
    const askedAt = timer();
    return await this.#database.lend(async (connection) => {
      const begunAt = timer();
      try {
        return await transact(connection);
      } finally {
        onTried({ waitedMs: begunAt - askedAt, durationMs: timer() - begunAt });
      }
    });
  }

  /**
   * Begins a transaction that takes an idempotency key; null: another request has it. Half of the connections may wait
   * for keys: the rest is left for others, also when all that waits at another node is sent again to this one.
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

  /** Whether no other node is at the housework. */
  async #isFirst(connection: Connection): Promise<boolean> {
    const [row] = await connection.rows(this.#maintenance, []);
    return row?.['held'] === true;
  }

  async #transact(
    connection: Connection,
    request: WriteRequest<AuthorityUseCase>,
    databaseNow: number,
  ): Promise<unknown> {
    const { run, isRefusal, context, onCredentialsChanged } = this.#how;
    const leftToOthers = maintenance[request.name];
    if (leftToOthers !== undefined && !(await this.#isFirst(connection))) {
      await connection.rollback();
      return leftToOthers;
    }
    const result = await run(connection.transaction, request, context(databaseNow));
    if (isRefusal(result)) {
      await connection.rollback();
      return result;
    }
    try {
      await connection.commit();
    } finally {
      // Also when nobody can tell whether it did.
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

/** What could not be done however often it was tried. Only a constraint that holds for ever is a fault of ours. */
function lastError(error: unknown, isAlwaysTaken: boolean): unknown {
  return isAlwaysTaken ? error : storageErrorOf(error);
}

function keyInUse(): ReturnType<typeof refuse> {
  return refuse('idempotency_key_in_use', 'The first request with this key has not been answered yet.');
}
