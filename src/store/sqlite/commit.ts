import type { DatabaseSync } from 'node:sqlite';
import type { Traced } from '../../domain/outbox/trace.ts';
import { StorageError, type WriterContext } from '../../service/ports.ts';
import type { Awaitable, Change, Transaction, SettingTable } from '../../service/tables.ts';
import type { WritingConnection } from './connection.ts';
import { mayBeOutOfSpace, storageFault } from './faults.ts';
import { sqlOn } from './statements.ts';
import type { CommandResult, WriteRequest, Writer } from '../../service/writer.ts';

/** A batch takes no further message from this many commands on: a larger one would keep its first command waiting. */
export const maxBatchSize = 512;

/**
 * The outcome of one command. A result is committed unless it is a refusal; an error wrote nothing. `traced`: the events
 * of operations. `changes`: the records to invalidate in the caches for verifies. Both are absent if empty.
 */
export type CommandOutcome =
  { result: unknown; traced?: readonly Traced[]; changes?: readonly Change[] } | { error: unknown };

type CommandRun<Command> = {
  /** May await only the tables. */
  run: (transaction: Transaction, command: Command) => Awaitable<unknown>;
  /** Whether a result is a refusal. A refusal is rolled back. */
  isFailure: (result: unknown) => boolean;
  /** Whether the disk is full. Needed because SQLite reports an exceeded quota as an I/O error. Default: it is not. */
  isOutOfSpace?: () => boolean;
};

export interface Committer<Command> {
  /**
   * Runs the commands in one transaction and returns one outcome for each, in order.
   *
   * 1. All commands run without savepoints, because SQLite writes each page that a savepoint changes to a journal.
   * 2. If a command must be undone after it wrote, all commands run again, each in a savepoint.
   * 3. If SQLite itself rolls the transaction back, each command runs again in its own transaction.
   *
   * Nothing here waits for a timer or a message, so no other batch can join. Throws while another batch is running.
   */
  commitBatch(commands: readonly Command[]): Promise<CommandOutcome[]>;
  /** Set once the storage has failed. Every later command gets this error. */
  readonly broken: StorageError | null;
}

/** A connection may have only one committer. */
export function prepareCommitter<Command>(
  connection: WritingConnection,
  how: CommandRun<Command>,
): Committer<Command> {
  return new BatchCommitter(connection, how);
}

class BatchCommitter<Command> implements Committer<Command> {
  readonly #connection: WritingConnection;
  readonly #settings: CachedSettings;
  /** The tables of the connection, with cached settings. */
  readonly #transaction: Transaction;
  readonly #scopes: Scopes;
  readonly #how: CommandRun<Command>;
  #broken: StorageError | null = null;
  #isBusy = false;

  constructor(connection: WritingConnection, how: CommandRun<Command>) {
    this.#connection = connection;
    this.#settings = new CachedSettings(connection.transaction.settings);
    this.#transaction = { ...connection.transaction, settings: this.#settings };
    this.#scopes = prepareScopes(connection.database);
    this.#how = how;
  }

  get broken(): StorageError | null {
    return this.#broken;
  }

  async commitBatch(commands: readonly Command[]): Promise<CommandOutcome[]> {
    if (this.#isBusy) throw new Error('another batch is running on this connection');
    this.#isBusy = true;
    try {
      return await this.#commit(commands);
    } finally {
      this.#isBusy = false;
    }
  }

  async #commit(
    commands: readonly Command[],
    scope: Scope = commands.length === 1 ? this.#scopes.whole : this.#scopes.none,
  ): Promise<CommandOutcome[]> {
    if (this.#broken !== null) return refuseAll(commands, this.#broken);
    let isCommitting = false;
    try {
      this.#scopes.begin();
      this.#settings.clear();
      const outcomes: CommandOutcome[] = [];
      for (const command of commands) {
        const outcome = await this.#runOne(command, scope);
        if (outcome === null) {
          this.#scopes.rollback();
          return await this.#commit(commands, this.#scopes.savepoint);
        }
        outcomes.push(outcome);
      }
      isCommitting = true;
      if (this.#connection.database.isTransaction) this.#scopes.commit();
      return outcomes;
    } catch (error) {
      return await this.#recover(commands, error, isCommitting);
    }
  }

  /** Returns null if the command must be undone, but only the whole batch can be. Throws if the transaction is lost. */
  async #runOne(command: Command, scope: Scope): Promise<CommandOutcome | null> {
    const { database } = this.#connection;
    const transaction = this.#transaction;
    scope.open();
    let outcome: CommandOutcome;
    try {
      outcome = { result: await this.#how.run(transaction, command) };
    } catch (error) {
      outcome = { error };
    }
    const traced = transaction.trace.take();
    const changes = transaction.changes.take();
    const fault = 'error' in outcome ? storageFault(outcome.error) : null;
    // Some errors make SQLite roll back the whole transaction, even if the use case has caught them.
    if (fault === 'failed' || !database.isTransaction) throw errorOf(outcome);
    if ('error' in outcome || this.#how.isFailure(outcome.result)) {
      if (!scope.undo()) return null;
      this.#settings.clear();
    } else {
      scope.close();
      if (traced.length > 0) outcome.traced = traced;
      if (changes.length > 0) outcome.changes = changes;
    }
    return fault === 'full' ? { error: new StorageError('full', errorOf(outcome)) } : outcome;
  }

  /** After a failed batch, of which nothing was committed: runs each command in its own transaction if the storage works. */
  async #recover(
    commands: readonly Command[],
    error: unknown,
    wasCommitting: boolean,
  ): Promise<CommandOutcome[]> {
    const fault = this.#faultOf(error);
    if (fault === 'failed') return this.#fail(commands, error, wasCommitting);
    try {
      if (this.#connection.database.isTransaction) this.#scopes.rollback();
    } catch (rollbackError) {
      return this.#fail(commands, rollbackError);
    }
    // Another program holds a lock. Waiting for it once per command would block every writer.
    if (fault === 'busy') return refuseAll(commands, new StorageError('failed', error));
    if (commands.length > 1) {
      const outcomes: CommandOutcome[] = [];
      for (const command of commands) outcomes.push(...(await this.#commit([command])));
      return outcomes;
    }
    return refuseAll(commands, fault === 'full' ? new StorageError('full', error) : error);
  }

  #faultOf(error: unknown): ReturnType<typeof storageFault> {
    return mayBeOutOfSpace(error) && this.#how.isOutOfSpace?.() === true ? 'full' : storageFault(error);
  }

  /**
   * After an I/O error the connection is not used again, because its view of the file may be wrong. If COMMIT failed,
   * the next start may find the changes in the write-ahead log and treat them as committed.
   */
  #fail(commands: readonly Command[], error: unknown, wasCommitting = false): CommandOutcome[] {
    this.#broken = new StorageError('failed', error);
    return refuseAll(commands, wasCommitting ? new StorageError('commit_failed', error) : this.#broken);
  }
}

/** How a single command is undone; `undo` returns whether it could. */
type Scope = Record<'open' | 'close', () => void> & { undo: () => boolean };
type Scopes = Record<'begin' | 'commit' | 'rollback', () => void> &
  Record<'whole' | 'none' | 'savepoint', Scope>;

function prepareScopes(database: DatabaseSync): Scopes {
  const prepare = (sql: string) => {
    const statement = database.prepare(sql);
    return () => {
      statement.run();
    };
  };
  const rollback = prepare('ROLLBACK');
  const undo = prepare('ROLLBACK TO command');
  const close = prepare('RELEASE command');
  const rowsChanged = sqlOn(database).count('SELECT total_changes() AS count');
  let rowsBefore = 0;
  const nothing = (): void => undefined;
  return {
    begin: prepare('BEGIN IMMEDIATE'),
    commit: prepare('COMMIT'),
    rollback,
    whole: {
      open: nothing,
      close: nothing,
      undo: () => {
        rollback();
        return true;
      },
    },
    none: {
      open: () => {
        rowsBefore = rowsChanged();
      },
      close: nothing,
      undo: () => rowsChanged() === rowsBefore,
    },
    savepoint: {
      open: prepare('SAVEPOINT command'),
      close,
      undo: () => {
        undo();
        close();
        return true;
      },
    },
  };
}

function errorOf(outcome: CommandOutcome): unknown {
  return 'error' in outcome ? outcome.error : new Error('the transaction was rolled back');
}

function refuseAll(commands: readonly unknown[], error: unknown): CommandOutcome[] {
  return commands.map(() => ({ error }));
}

/** Reads each setting once per transaction, because every delivery in a batch reads the same settings. */
class CachedSettings implements SettingTable {
  readonly #table: SettingTable;
  readonly #values = new Map<string, string | null>();

  constructor(table: SettingTable) {
    this.#table = table;
  }

  get(name: string): string | null {
    const cached = this.#values.get(name);
    if (cached !== undefined) return cached;
    const value = this.#table.get(name);
    this.#values.set(name, value);
    return value;
  }

  epoch(): string | null {
    return this.#table.epoch();
  }

  set(name: string, value: string): void {
    this.#table.set(name, value);
    this.#values.set(name, value);
  }

  /** Called when a transaction begins, and when a command is undone. */
  clear(): void {
    this.#values.clear();
  }
}

export type UseCaseRun = {
  run: (transaction: Transaction, request: WriteRequest, context: WriterContext) => Awaitable<unknown>;
  isFailure: (result: unknown) => boolean;
  /** Called once for each write. */
  context: () => WriterContext;
};

/** A writer in the caller's thread, with one commit for each command. */
export function localWriter(connection: WritingConnection, { run, isFailure, context }: UseCaseRun): Writer {
  type Posted = { request: WriteRequest; context: WriterContext };
  const committer = prepareCommitter<Posted>(connection, {
    run: (transaction, posted) => run(transaction, posted.request, posted.context),
    isFailure,
  });
  let last: Promise<CommandOutcome[]> = Promise.resolve([]);
  return {
    async write(name, command, writeOptions = {}) {
      const posted = { request: { name, command, writeOptions }, context: context() };
      last = last.then(() => committer.commitBatch([posted]));
      const [outcome] = await last;
      if (outcome === undefined) throw new Error('the committer returned no outcome');
      if ('error' in outcome) throw outcome.error;
      // The compiler cannot infer the result type from the name.
      return outcome.result as CommandResult<typeof name>;
    },
  };
}
