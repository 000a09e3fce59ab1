import type { DatabaseSync } from 'node:sqlite';
import type { Traced } from '../../domain/outbox/operation.ts';
import { StorageError } from '../../service/ports.ts';
import type { Awaitable, Change, Transaction, SettingTable } from '../../service/tables.ts';
import type { WritingConnection } from './connection.ts';
import { mayWantRoom, storageFault } from './faults.ts';
import { prepareCount } from './statements.ts';

/** The largest number of commands in one commit: a larger batch would keep its first command waiting. */
export const largestBatch = 512;

/**
 * The outcome of one command: a result is committed, unless it is a refusal; an error wrote nothing. `traced`: what
 * happened to operations, `changes`: what changed of what verifies are answered from; absent when nothing did.
 */
export type CommandOutcome =
  { result: unknown; traced?: readonly Traced[]; changes?: readonly Change[] } | { error: unknown };

/** How the commands of a batch are run. */
type CommandRun<Command> = {
  /** May await its tables and nothing else. */
  run: (transaction: Transaction, command: Command) => Awaitable<unknown>;
  /** Whether a result is a refusal, which is rolled back. */
  isRefusal: (result: unknown) => boolean;
  /** Whether the disk takes no more: where a quota says so, SQLite calls it an I/O error. Left out: it does. */
  lacksRoom?: () => boolean;
};

/** Commits commands in batches. */
export interface Committer<Command> {
  /**
   * Runs the commands in one transaction and returns one outcome for each, in order. One that must be undone
   * after it wrote takes the others back with it, and all are run anew, each in a savepoint: they are rare, and
   * SQLite writes every page that a savepoint changes to a journal of its own. If SQLite rolls the transaction
   * back, each command gets one of its own. Nothing here waits for a timer or a message, so that no other batch
   * gets into the same transaction. Throws while another batch is running.
   */
  commitBatch(commands: readonly Command[]): Promise<CommandOutcome[]>;
  /** Set once the storage has failed: every later command is refused with it. */
  readonly broken: StorageError | null;
}

/** Makes the only committer of a connection. */
export function prepareCommitter<Command>(
  connection: WritingConnection,
  how: CommandRun<Command>,
): Committer<Command> {
  return new BatchCommitter(connection, how);
}

class BatchCommitter<Command> implements Committer<Command> {
  readonly #connection: WritingConnection;
  readonly #settings: RememberedSettings;
  /** The tables of the connection, with remembered settings. */
  readonly #transaction: Transaction;
  readonly #scopes: Scopes;
  readonly #how: CommandRun<Command>;
  #broken: StorageError | null = null;
  #isBusy = false;

  constructor(connection: WritingConnection, how: CommandRun<Command>) {
    this.#connection = connection;
    this.#settings = new RememberedSettings(connection.transaction.settings);
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
      this.#settings.forget();
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

  /** Null: it must be undone and cannot be without the others. Throws when the whole transaction is lost. */
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
    // Some errors make SQLite roll back the whole transaction, even when the use case has caught them.
    if (fault === 'failed' || !database.isTransaction) throw lossOf(outcome);
    if ('error' in outcome || this.#how.isRefusal(outcome.result)) {
      if (!scope.undo()) return null;
      this.#settings.forget();
    } else {
      scope.close();
      if (traced.length > 0) outcome.traced = traced;
      if (changes.length > 0) outcome.changes = changes;
    }
    return fault === 'full' ? { error: new StorageError('full', lossOf(outcome)) } : outcome;
  }

  /** Runs each command in a transaction of its own, unless the storage has failed: nothing was committed. */
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
    // Another program holds a lock: to wait for it once a command would block every writer.
    if (fault === 'busy') return refuseAll(commands, new StorageError('failed', error));
    if (commands.length > 1) {
      const outcomes: CommandOutcome[] = [];
      for (const command of commands) outcomes.push(...(await this.#commit([command])));
      return outcomes;
    }
    return refuseAll(commands, fault === 'full' ? new StorageError('full', error) : error);
  }

  #faultOf(error: unknown): ReturnType<typeof storageFault> {
    return mayWantRoom(error) && this.#how.lacksRoom?.() === true ? 'full' : storageFault(error);
  }

  /**
   * After an I/O error the connection's view of the file cannot be trusted: it is not used again. What COMMIT has
   * written to the log of changes before it failed, the next start may find there, and take for committed.
   */
  #fail(commands: readonly Command[], error: unknown, wasCommitting = false): CommandOutcome[] {
    this.#broken = new StorageError('failed', error);
    return refuseAll(commands, wasCommitting ? new StorageError('commit_failed', error) : this.#broken);
  }
}

/** What a command can be undone in; `undo` says whether it is. */
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
  const rowsChanged = prepareCount(database, 'SELECT total_changes() AS count');
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

function lossOf(outcome: CommandOutcome): unknown {
  return 'error' in outcome ? outcome.error : new Error('the transaction was rolled back');
}

function refuseAll(commands: readonly unknown[], error: unknown): CommandOutcome[] {
  return commands.map(() => ({ error }));
}

/** Single facts about the store, each read once a transaction: all that is delivered in it asks for the same ones. */
class RememberedSettings implements SettingTable {
  readonly #table: SettingTable;
  readonly #values = new Map<string, string | null>();

  constructor(table: SettingTable) {
    this.#table = table;
  }

  get(name: string): string | null {
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const value = this.#table.get(name);
    this.#values.set(name, value);
    return value;
  }

  set(name: string, value: string): void {
    this.#table.set(name, value);
    this.#values.set(name, value);
  }

  /** Reads anew from now on: another transaction begins, or something in this one was undone. */
  forget(): void {
    this.#values.clear();
  }
}
