import type { PoolClient } from 'pg';
import type { StoredResponse, AuthorityTransaction } from '../../../service/tables.ts';
import { trackChanges } from '../../../store/changes.ts';
import type { SqlValue } from '../../../store/sql.ts';
import { storedResponseOf, type StoredRow } from '../../../store/tables/access.ts';
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
  type Statement,
  type WritingSource,
} from './statements.ts';
import { prepareTransaction } from './tables.ts';

/** The response to COMMIT or to an autocommit statement was lost, so it is unknown whether it was committed. */
export class CommitInDoubt extends Error {
  constructor(cause: unknown) {
    super('the answer to a commit was lost', { cause });
    this.name = 'CommitInDoubt';
  }
}

/**
 * The idempotency key, which a transaction locks first. `waits`: if another request has the key, wait as long as for
 * any other lock. Otherwise wait only for a commit that is under way.
 */
export type Claim = { credential: string; key: string; fingerprint: string; waits: boolean };

/** The wait for a lock of a transaction that should not wait, in ms. */
const shortWaitMs = 50;

const clock = statementOf(`SELECT ${epochMs} AS now`);

/**
 * One connection of the pool and its tables. Statements are sent at once and answered in order
 * (https://www.postgresql.org/docs/current/protocol-flow.html, "Pipelining").
 */
export class Connection implements WritingSource {
  readonly names: Names;
  readonly transaction: AuthorityTransaction;
  readonly #client: PoolClient;
  readonly #isBehindPooler: boolean;
  readonly #begin: string;
  readonly #lockWaitMs: number;
  readonly #claims: { lock: Statement; insert: Statement; select: Statement };
  readonly #notification: Statement;
  #changesCredentials = false;
  /** The idempotency key of the current transaction, and the stored response for this key. */
  #claimed: (Claim & { stored: StoredResponse | null }) | null = null;
  /** The first error of the current transaction; it causes all later errors. */
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
    // `begin` has already read the row of the transaction's own key.
    const getClaimed: typeof get = (credential, key) =>
      this.#claimed?.credential === credential && this.#claimed.key === key
        ? this.#claimed.stored
        : get(credential, key);
    const claiming = { ...tables, idempotency: { ...tables.idempotency, get: getClaimed } };
    this.transaction = trackChanges(claiming, {
      add: (change) => {
        // Licenses are not cached.
        if (typeof change !== 'object') this.#changesCredentials = true;
      },
    });
    const idempotency = names.of('idempotency');
    this.#notification = statementOf(`SELECT pg_notify('${names.channel}', '')`);
    this.#claims = {
      lock: statementOf(`SELECT pg_advisory_xact_lock(${keyLock(names, '$1::text', '$2::text')})`),
      insert:
        statementOf(`INSERT INTO ${idempotency} (credential, key, fingerprint, kept_until) VALUES ($1, $2, $3, ${epochMs})
        ON CONFLICT (credential, key) DO NOTHING`),
      select: statementOf(
        `SELECT fingerprint, value FROM ${idempotency} WHERE credential = $1 AND key = $2 FOR UPDATE`,
      ),
    };
  }

  /** Whether the current or last transaction changes records that nodes cache. */
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

  /** Runs a query that is not prepared. */
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
   * Begins a transaction in one round trip: locks the idempotency key, for at most `lock_timeout`, then the other locks.
   * Returns the time of the database (epoch ms) after the locks. Throws `KeyInUse`; then the transaction must be rolled
   * back.
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

  /** Makes the current transaction wait for locks only briefly. */
  waitBriefly(): void {
    this.#waitAtMost(Math.min(shortWaitMs, this.#lockWaitMs));
  }

  /** Runs statements that are not prepared, without a deadline. */
  async execute(text: string): Promise<void> {
    await this.#client.query(unlimited(text));
  }

  /**
   * Commits, and notifies the other nodes if a cached record changed. Changes of licenses, purchases and coupons send no
   * notification, because transactions with a notification commit one after the other. Throws `CommitInDoubt` if the outcome is
   * unknown. Any other error means that nothing was committed.
   */
  async commit(): Promise<void> {
    let command: string;
    if (this.#changesCredentials) this.send(this.#notification, []);
    try {
      command = await this.#control('COMMIT');
    } catch (error) {
      const cause = this.#failure ?? error;
      throw isSurelyUndone(cause) ? cause : new CommitInDoubt(cause);
    }
    // If a statement has failed, the server answers COMMIT with ROLLBACK.
    if (command !== 'COMMIT') throw this.#failure ?? new Error(`COMMIT was answered with ${command}`);
  }

  async rollback(): Promise<void> {
    await this.#control('ROLLBACK');
  }

  /** Runs a statement outside a transaction. Throws as `commit` does. */
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

  /** Behind a pooler, the deadlines of the server are only set in a transaction. */
  async #transact(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    await this.begin(null, []);
    const rows = await this.rows(statement, values);
    await this.commit();
    return rows;
  }

  /**
   * The insert waits for another transaction with the same key, which a SELECT would not see before its commit. The
   * advisory lock before it is for requests that do not wait (src/features/postgres/store/README.md, Grouped uses).
   */
  async #claim(claim: Claim): Promise<void> {
    const { credential, key, fingerprint, waits } = claim;
    const { lock, insert, select } = this.#claims;
    if (!waits) this.waitBriefly();
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
