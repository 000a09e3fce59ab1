import type { PoolClient } from 'pg';
import type { StoredResponse } from '../../service/access/tables.ts';
import type { AuthorityTransaction } from '../../service/tables.ts';
import { trackChanges } from '../changes.ts';
import { lockWaitMs, settings, unlimited, type ConnectionSettings } from './client.ts';
import { isAnswered, isSurelyUndone, KeyInUse, sqlState, sqlStates } from './faults.ts';
import { keyLock } from './locks.ts';
import type { Names } from './names.ts';
import {
  epochMs,
  queryOf,
  statementOf,
  type BoundStatement,
  type Lookup,
  type Row,
  type SqlValue,
  type Statement,
  type WritingSource,
} from './statements.ts';
import { prepareTransaction } from './tables.ts';
import { storedResponseOf, type StoredRow } from './tables/access/idempotency.ts';

/** The answer to COMMIT, or to a statement that is a transaction of its own, was lost: nobody knows what it says. */
export class CommitInDoubt extends Error {
  constructor(cause: unknown) {
    super('the answer to a commit was lost', { cause });
    this.name = 'CommitInDoubt';
  }
}

/**
 * An idempotency key as the first thing that a transaction takes. `waits`: as long as for any lock where another
 * request has it, and not just for the moment in which that may be committing.
 */
export type Claim = { credential: string; key: string; fingerprint: string; waits: boolean };

/** How long whoever is not to wait waits for a lock, in ms. */
const momentMs = 50;

const clock = statementOf(`SELECT ${epochMs} AS now`);

/**
 * One connection of the pool, and the tables over it. Its statements are sent as soon as they are asked for, and are
 * answered in their order (https://www.postgresql.org/docs/current/protocol-flow.html, "Pipelining").
 */
export class Connection implements WritingSource {
  readonly names: Names;
  readonly transaction: AuthorityTransaction;
  readonly #client: PoolClient;
  readonly #isBehindPooler: boolean;
  readonly #begin: string;
  readonly #lockWaitMs: number;
  readonly #claims: { lock: Statement; insert: Statement; select: Statement };
  readonly #notice: Statement;
  #changesCredentials = false;
  /** The idempotency key of the transaction under way, and what was answered under it before. */
  #claimed: (Claim & { stored: StoredResponse | null }) | null = null;
  /** Of the transaction under way: the first error, which is the reason of all others. */
  #failure: Error | null = null;

  constructor(
    client: PoolClient,
    names: Names,
    { statementTimeoutMs, isBehindPooler = false }: ConnectionSettings,
  ) {
    this.#client = client;
    this.#isBehindPooler = isBehindPooler;
    const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    this.#begin = isBehindPooler ? `${begin}; ${settings('LOCAL', statementTimeoutMs)}` : begin;
    this.#lockWaitMs = lockWaitMs(statementTimeoutMs);
    this.names = names;
    const tables = prepareTransaction(this);
    const { get } = tables.idempotency;
    // The transaction begins with the row of its own key.
    const getClaimed: typeof get = (credential, key) =>
      this.#claimed?.credential === credential && this.#claimed.key === key
        ? this.#claimed.stored
        : get(credential, key);
    const claiming = { ...tables, idempotency: { ...tables.idempotency, get: getClaimed } };
    this.transaction = trackChanges(claiming, {
      add: (change) => {
        // Of licenses nothing is remembered.
        if (typeof change !== 'object') this.#changesCredentials = true;
      },
    });
    const { idempotency, channel } = names;
    this.#notice = statementOf(`SELECT pg_notify('${channel}', '')`);
    this.#claims = {
      lock: statementOf(`SELECT pg_advisory_xact_lock(${keyLock(names, '$1::text', '$2::text')})`),
      insert:
        statementOf(`INSERT INTO ${idempotency} (credential, key, fingerprint, at) VALUES ($1, $2, $3, ${epochMs})
        ON CONFLICT (credential, key) DO NOTHING`),
      select: statementOf(
        `SELECT fingerprint, value FROM ${idempotency} WHERE credential = $1 AND key = $2 FOR UPDATE`,
      ),
    };
  }

  /** Whether the transaction under way, or the last one, changes what nodes remember. */
  get changesCredentials(): boolean {
    return this.#changesCredentials;
  }

  async rows(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    try {
      const { rows } = await this.#client.query<Row>(queryOf(statement, values, this.#isBehindPooler));
      return rows;
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
      throw this.#failure;
    }
  }

  /** Sends a query of no table. */
  readonly query = (text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> =>
    this.rows({ name: '', text }, values);

  async row(statement: Statement, values: readonly SqlValue[]): Promise<Row | undefined> {
    const [row] = await this.rows(statement, values);
    return row;
  }

  lookUp(statement: Lookup, key: string): Promise<Row | undefined> {
    return this.row(statement, [[key]]);
  }

  send(statement: Statement, values: readonly SqlValue[]): void {
    this.rows(statement, values).catch(() => undefined);
  }

  /**
   * Begins a transaction, in one round trip: takes the idempotency key, for which it waits as long as `lock_timeout`
   * says, then the locks; gives the time of the database (epoch ms) when it had them all. Throws `KeyInUse`, after which
   * it can only be rolled back.
   */
  async begin(claim: Claim | null, locks: readonly BoundStatement[]): Promise<number> {
    this.#failure = null;
    this.#changesCredentials = false;
    this.#claimed = null;
    const begun = this.#control(this.#begin);
    const claimed = claim === null ? null : this.#claim(claim);
    const rest = [...locks, { statement: clock, values: [] }].map((one) =>
      this.rows(one.statement, one.values),
    );
    const answers = await Promise.allSettled([begun, claimed, ...rest]);
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const [row] = (await rest.at(-1)) ?? [];
    return Number(row?.['now']);
  }

  /** Has the transaction under way wait for no lock longer than a moment. */
  waitAMoment(): void {
    this.#waitAtMost(Math.min(momentMs, this.#lockWaitMs));
  }

  /** Runs statements of no table, one after the other, however long they take. */
  async execute(text: string): Promise<void> {
    await this.#client.query(unlimited(text));
  }

  /**
   * Commits, and has the other nodes forget what it changes of what they remember: never for licenses, purchases or
   * coupons, since whoever sends notices commits one after the other. Throws `CommitInDoubt` when nobody can tell, and
   * otherwise when nothing was committed.
   */
  async commit(): Promise<void> {
    let command: string;
    if (this.#changesCredentials) this.send(this.#notice, []);
    try {
      command = await this.#control('COMMIT');
    } catch (error) {
      const cause = this.#failure ?? error;
      throw isSurelyUndone(cause) ? cause : new CommitInDoubt(cause);
    }
    // COMMIT of a transaction in which a statement has failed is answered so.
    if (command !== 'COMMIT') throw this.#failure ?? new Error(`COMMIT was answered with ${command}`);
  }

  async rollback(): Promise<void> {
    await this.#control('ROLLBACK');
  }

  /** Runs a statement that is a transaction of its own. Throws as `commit` does. */
  async autocommit(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.#isBehindPooler) return await this.#transact(statement, values);
    this.#failure = null;
    this.#changesCredentials = false;
    try {
      return await this.rows(statement, values);
    } catch (error) {
      throw isAnswered(error) ? error : new CommitInDoubt(error);
    }
  }

  /** Only a transaction has the deadlines of the server where a pooler is in between. */
  async #transact(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    await this.begin(null, []);
    const rows = await this.rows(statement, values);
    await this.commit();
    return rows;
  }

  /**
   * Whose key it is, an insert finds out: it waits for another that is not committed yet, which a SELECT would miss.
   * The lock before it is what those ask for who do not wait (src/store/postgres/README.md, Grouped uses).
   */
  async #claim(claim: Claim): Promise<void> {
    const { credential, key, fingerprint, waits } = claim;
    const { lock, insert, select } = this.#claims;
    if (!waits) this.waitAMoment();
    const locked = this.rows(lock, [credential, key]);
    const inserted = this.rows(insert, [credential, key, fingerprint]);
    const found = this.row(select, [credential, key]);
    if (!waits) this.#waitAtMost(this.#lockWaitMs);
    for (const answer of await Promise.allSettled([locked, inserted, found])) {
      if (answer.status === 'fulfilled') continue;
      throw sqlState(answer.reason) === sqlStates.lockNotAvailable
        ? new KeyInUse(answer.reason)
        : answer.reason;
    }
    const row = await found;
    this.#claimed = { ...claim, stored: row === undefined ? null : storedResponseOf(row as StoredRow) };
  }

  #waitAtMost(ms: number): void {
    this.send({ name: '', text: `SET LOCAL lock_timeout = ${ms}` }, []);
  }

  async #control(text: string): Promise<string> {
    const { command } = await this.#client.query(text);
    return command;
  }
}
