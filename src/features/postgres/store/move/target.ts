import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Client } from 'pg';
import { from } from 'pg-copy-streams';
import { patientConfig, placeOf, type DatabaseAddress } from '../client.ts';
import { isSurelyUndone, sqlState, PostgresAway, refusalOf } from '../faults.ts';
import { makeTables } from '../migrations.ts';
import { namesIn, type Names } from '../names.ts';
import type { lastNumbers, MovedTable, Value } from './tables.ts';

/** The response to COMMIT was lost: either everything was moved, or nothing. */
export class MoveInDoubt extends Error {
  constructor(cause: unknown) {
    super('It is unknown whether the move was committed: the response of the database was lost.', {
      cause,
    });
    this.name = 'MoveInDoubt';
  }
}

/** SET LOCAL, because a pooler may lose settings of the session. */
const beginTransaction = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
  SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL synchronous_commit = on;
  SET LOCAL extra_float_digits = 1`;

const fetchRows = 5_000;

/** A schema that is filled in one transaction on a separate connection. Disposing it before `commit` rolls back. */
export class Target implements AsyncDisposable {
  readonly #client: Client;
  readonly #names: Names;
  readonly #place: string;
  #isLost = false;

  private constructor(address: DatabaseAddress, schema: string) {
    const client = new Client(patientConfig(address));
    this.#client = client;
    this.#names = namesIn(schema);
    this.#place = placeOf(address);
    client.on('error', () => {
      this.#isLost = true;
    });
  }

  /** Begins the transaction and creates the tables. Throws `PostgresRefused` if the schema is not empty. */
  static async open(address: DatabaseAddress, schema: string): Promise<Target> {
    const target = new Target(address, schema);
    try {
      await target.#begin();
      return target;
    } catch (error) {
      await target[Symbol.asyncDispose]();
      throw target.#faultOf(error);
    }
  }

  /** Writes lines of the text format of COPY into a table. */
  async copy({ name, columns }: MovedTable, lines: AsyncIterable<string> | Iterable<string>): Promise<void> {
    // FREEZE is possible because no other transaction sees the new table. It saves a later pass over the rows.
    const text = `COPY ${this.#names.of(name)} (${columns.join(', ')}) FROM STDIN (FREEZE)`;
    try {
      await pipeline(Readable.from(lines, { objectMode: false }), this.#client.query(from(text)));
    } catch (error) {
      // The error may also come from `lines`.
      throw this.#isLost || sqlState(error) !== null ? this.#faultOf(error) : error;
    }
  }

  /** Reads the rows of a table in the order of its key. */
  async *rows({ name, columns, booleans, keyLength }: MovedTable): AsyncGenerator<readonly Value[]> {
    const selected = columns.map((column) => (booleans.includes(column) ? `${column}::integer` : column));
    const by = columns.slice(0, keyLength).join(', ');
    await this.#query(
      `DECLARE moved NO SCROLL CURSOR FOR SELECT ${selected.join(', ')} FROM ${this.#names.of(name)} ORDER BY ${by}`,
    );
    for (;;) {
      const rows = await this.#query<Value>(`FETCH ${fetchRows} FROM moved`);
      yield* rows;
      if (rows.length < fetchRows) break;
    }
    await this.#query('CLOSE moved');
  }

  /** Sets the last number of each kind that was used, so that the next ones are higher. */
  async continueNumbersAfter({
    coupon,
    audit,
    redemption,
    syncAgent,
  }: Record<keyof typeof lastNumbers, number>): Promise<void> {
    await this.#query(`UPDATE ${this.#names.of('coupon_number')} SET last = $1`, [coupon]);
    const identities = [
      [this.#names.of('audit_event'), 'id', audit],
      [this.#names.of('redemption'), 'id', redemption],
      [this.#names.of('sync_agent'), 'number', syncAgent],
    ] as const;
    for (const [name, column, last] of identities) {
      const text = `SELECT setval(pg_get_serial_sequence($1, $2), greatest($3, 1), $3 > 0)`;
      await this.#query(text, [name, column, last]);
    }
  }

  /** Throws `MoveInDoubt` if the outcome is unknown. */
  async commit(tables: readonly MovedTable[]): Promise<void> {
    // Without statistics, the first queries would be planned for empty tables.
    await this.#query(`ANALYZE ${tables.map(({ name }) => this.#names.of(name)).join(', ')}`);
    try {
      await this.#client.query('COMMIT');
    } catch (error) {
      throw isSurelyUndone(error) ? this.#faultOf(error) : new MoveInDoubt(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }

  async #begin(): Promise<void> {
    const client = this.#client;
    await client.connect();
    await client.query(beginTransaction);
    await makeTables({
      names: this.#names,
      query: async (text, values) => (await client.query(text, [...(values ?? [])])).rows,
      execute: async (text) => void (await client.query(text)),
    });
  }

  #faultOf(error: unknown): Error {
    const at = { names: this.#names, place: this.#place };
    return refusalOf(error, at) ?? new PostgresAway(this.#place, error);
  }

  async #query<Cell>(text: string, values: readonly (string | number)[] = []): Promise<Cell[][]> {
    try {
      const { rows } = await this.#client.query<Cell[]>({ text, values: [...values], rowMode: 'array' });
      return rows;
    } catch (error) {
      throw this.#faultOf(error);
    }
  }
}
