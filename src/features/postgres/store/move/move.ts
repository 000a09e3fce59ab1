import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import type { DatabaseAddress } from '../client.ts';
import { movedTables, type MovedTable, lastNumbers, type Value } from './tables.ts';
import { Target } from './target.ts';

/** The rows that were read back differ from the source. Nothing was changed. */
export class MoveUnequal extends Error {
  constructor(name: string, { source, target }: Record<'source' | 'target', Contents>) {
    super(
      `The copy of the table ${name} differs from the store (${target.rows} of ${source.rows} rows, SHA-256 ${target.sha256.slice(0, 12)} and ${source.sha256.slice(0, 12)}).`,
    );
    this.name = 'MoveUnequal';
  }
}

/** The progress of a move. Each row counts twice: when it is copied and when it is read back. */
export type Progress = { table: string; isCheck: boolean; done: number; total: number };

type Move = {
  source: Source;
  address: DatabaseAddress;
  schema: string;
  onProgress: (progress: Progress) => void;
  /** Aborts the move: the target stays unchanged. */
  signal: AbortSignal;
};

/** The number of rows that are sent, and reported, at once. */
const batchRows = 1_000;

/**
 * Copies an authority from SQLite into an empty schema in one transaction, and reads each table back before the commit.
 * Returns the contents of each table. Throws `PostgresRefused`, `MoveUnequal`, `MoveInDoubt`, the reason of the signal,
 * or the error of the database.
 */
export async function move(options: Move): Promise<ReadonlyMap<string, Contents>> {
  const { source, address, schema } = options;
  await using target = await Target.open(address, schema);
  const counts = new Map(movedTables.map((table) => [table, source.count(table)]));
  const progress = new ProgressCount(
    options,
    2 * [...counts.values()].reduce((sum, count) => sum + count, 0),
  );
  const sent = new Map<MovedTable, Contents>();
  for (const table of movedTables) {
    const sum = new ContentsSum();
    await target.copy(table, linesOf(table, source, { sum, progress }));
    const contents = sum.end();
    const rows = counts.get(table) ?? 0;
    if (contents.rows !== rows)
      throw new Error(`${contents.rows} of ${rows} rows of ${table.name} were read`);
    sent.set(table, contents);
  }
  await target.continueNumbersAfter({
    coupon: source.lastNumber('coupon'),
    audit: source.lastNumber('audit'),
    redemption: source.lastNumber('redemption'),
    syncAgent: source.lastNumber('syncAgent'),
  });
  for (const [table, contents] of sent) await compare(table, contents, { target, progress });
  await target.commit(movedTables);
  return new Map([...sent].map(([{ name }, contents]) => [name, contents]));
}

async function compare(
  table: MovedTable,
  source: Contents,
  { target, progress }: { target: Target; progress: ProgressCount },
): Promise<void> {
  const sum = new ContentsSum();
  let rows = 0;
  for await (const row of target.rows(table)) {
    sum.add(row);
    rows += 1;
    if (rows % batchRows === 0) progress.add(table, batchRows, true);
  }
  progress.add(table, rows % batchRows, true);
  const stored = sum.end();
  if (stored.rows === source.rows && stored.sha256 === source.sha256) return;
  throw new MoveUnequal(table.name, { source, target: stored });
}

/** The rows of a table as text for COPY, in batches. */
function* linesOf(
  table: MovedTable,
  source: Source,
  { sum, progress }: { sum: ContentsSum; progress: ProgressCount },
): Generator<string> {
  const toLine = copyText(table);
  let lines: string[] = [];
  for (const row of source.rows(table)) {
    sum.add(row);
    lines.push(toLine(row));
    if (lines.length < batchRows) continue;
    progress.add(table, lines.length, false);
    yield lines.join('');
    lines = [];
  }
  progress.add(table, lines.length, false);
  if (lines.length > 0) yield lines.join('');
}

/** Reports the progress, and throws if the move is aborted. */
class ProgressCount {
  readonly #options: Move;
  readonly #total: number;
  #done = 0;

  constructor(options: Move, total: number) {
    this.#options = options;
    this.#total = total;
  }

  add({ name }: MovedTable, rows: number, isCheck: boolean): void {
    this.#options.signal.throwIfAborted();
    this.#done += rows;
    this.#options.onProgress({ table: name, isCheck, done: this.#done, total: this.#total });
  }
}

/** The number of rows of a table, and their SHA-256 in the order of their key, in hexadecimal. */
export type Contents = { rows: number; sha256: string };

const hashBatchRows = 500;

class ContentsSum {
  readonly #hash = createHash('sha256');
  #lines = '';
  #rows = 0;

  add(row: readonly Value[]): void {
    this.#lines += `${JSON.stringify(row)}\n`;
    this.#rows += 1;
    if (this.#rows % hashBatchRows === 0) this.#flush();
  }

  end(): Contents {
    this.#flush();
    return { rows: this.#rows, sha256: this.#hash.digest('hex') };
  }

  #flush(): void {
    this.#hash.update(this.#lines);
    this.#lines = '';
  }
}

/** Escapes in the text format of COPY (https://www.postgresql.org/docs/current/sql-copy.html). */
const escapes: Readonly<Record<string, string>> = {
  '\\': String.raw`\\`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
};

/** Returns a function that formats a row as a line for COPY. */
function copyText({ columns, booleans }: MovedTable): (row: readonly Value[]) => string {
  const isBoolean = columns.map((column) => booleans.includes(column));
  return (row) => `${row.map((value, index) => cell(value, isBoolean[index] === true)).join('\t')}\n`;
}

function cell(value: Value, isBoolean: boolean): string {
  if (value === null) return String.raw`\N`;
  if (typeof value === 'string')
    return value.replaceAll(/[\\\n\r\t]/g, (character) => escapes[character] ?? character);
  if (!isBoolean) return String(value);
  return value === 0 ? 'f' : 't';
}

export interface Source extends Disposable {
  count(table: MovedTable): number;
  /** In the order of the primary key. */
  rows(table: MovedTable): IterableIterator<readonly Value[]>;
  lastNumber(of: keyof typeof lastNumbers): number;
}

/** Opens a database of the present schema. No process may write to it meanwhile. */
export function openSource(path: string): Source {
  const database = new DatabaseSync(path, { readOnly: true });
  const numberOf = (sql: string): number => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  return {
    count: ({ name, where }) => numberOf(`SELECT count(*) FROM ${name} WHERE ${where}`),
    rows(table) {
      const { name, columns, computed, keyLength, where } = table;
      const statement = database.prepare(
        `SELECT ${columns.map((column) => computed[column] ?? column).join(', ')} FROM ${name}
         WHERE ${where} ORDER BY ${columns.slice(0, keyLength).join(', ')}`,
      );
      statement.setReturnArrays(true);
      return statement.iterate() as unknown as IterableIterator<readonly Value[]>;
    },
    lastNumber: (of) => numberOf(lastNumbers[of]),
    [Symbol.dispose]: () => database.close(),
  };
}
