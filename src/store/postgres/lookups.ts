import type { Lookup, Row, SqlValue, Statement } from './statements.ts';

/** Calls at the end of this turn of the event loop. */
export type AfterTurn = (work: () => void) => unknown;

/** How many keys one statement asks for at most. */
const most = 256;

/** Reads rows; rejects with an error that callers are told. */
type ReadRows = (statement: Statement, values: readonly SqlValue[]) => Promise<readonly Row[]>;

type Waiting = PromiseWithResolvers<Row | undefined>;

/** The reads of one statement that are to leave together, by their keys; two of one key are one. */
type Group = Map<string, Waiting>;

/**
 * Reads of single rows by their keys: those of one turn of the event loop are one statement, which costs both sides
 * much less than a statement each (src/store/postgres/README.md, Reads).
 */
export class Lookups {
  readonly #read: ReadRows;
  readonly #afterTurn: AfterTurn;
  readonly #gathering = new Map<Lookup, Group>();

  constructor(read: ReadRows, afterTurn: AfterTurn) {
    this.#read = read;
    this.#afterTurn = afterTurn;
  }

  /** The row with a key; rejects as the read does. */
  read(statement: Lookup, key: string): Promise<Row | undefined> {
    const group = this.#gathering.get(statement);
    if (group === undefined) return this.#begin(statement, key);
    const known = group.get(key);
    if (known !== undefined) return known.promise;
    const waiting = Promise.withResolvers<Row | undefined>();
    group.set(key, waiting);
    if (group.size === most) this.#gathering.delete(statement);
    return waiting.promise;
  }

  #begin(statement: Lookup, key: string): Promise<Row | undefined> {
    const waiting = Promise.withResolvers<Row | undefined>();
    const group: Group = new Map([[key, waiting]]);
    this.#gathering.set(statement, group);
    this.#afterTurn(() => {
      if (this.#gathering.get(statement) === group) this.#gathering.delete(statement);
      void this.#send(statement, group);
    });
    return waiting.promise;
  }

  async #send(statement: Lookup, group: Group): Promise<void> {
    try {
      const rows = await this.#read(statement, [[...group.keys()]]);
      for (const row of rows) group.get(String(row[statement.key]))?.resolve(row);
      for (const { resolve } of group.values()) resolve(undefined);
    } catch (error) {
      for (const { reject } of group.values()) reject(error);
    }
  }
}
