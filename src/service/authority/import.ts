import { done, refuse, type Result } from '../../domain/problem/problem.ts';

/** The caller numbers the rows. */
export type RejectedRow = { row: number; code: string; detail: string };

export type ImportReport = { imported: number; unchanged: number; rejected: RejectedRow[] };

/** `rejected`: rows that could not be parsed. */
export type ImportRows<Row> = {
  rows: readonly Row[];
  rejected: readonly RejectedRow[];
  /** Import all rows or none. */
  isAtomic: boolean;
  /** Report the result, but write nothing. */
  isDryRun: boolean;
};

/** `unchanged`: the store already has the same content as the row. */
export type ImportedRow = 'imported' | 'unchanged' | { code: string; detail: string };

const maxConcurrentRows = 500;

export type RowImport<Row> = {
  importOne: (row: Row) => Promise<ImportedRow>;
  /** Rows with a common identity are not imported concurrently, because the later row depends on the earlier row. */
  identitiesOf: (row: Row) => readonly string[];
};

/**
 * Imports the rows with the same result as one after the other. If one row of an atomic import is rejected, all rows
 * are refused. Independent rows are imported concurrently, which saves round trips to a database server. They are sorted
 * by identity, so that indexes are written page by page.
 */
export async function importEach<Row extends { row: number }>(
  { rows, rejected, isAtomic, isDryRun }: ImportRows<Row>,
  { importOne, identitiesOf }: RowImport<Row>,
): Promise<Result<ImportReport>> {
  const report: ImportReport = { imported: 0, unchanged: 0, rejected: [...rejected] };
  for (const together of independentRows(rows, identitiesOf)) {
    const outcomes = await Promise.all(together.map(async (row) => [row, await importOne(row)] as const));
    for (const [{ row }, outcome] of outcomes) {
      if (typeof outcome === 'string') report[outcome] += 1;
      else report.rejected.push({ row, ...outcome });
    }
  }
  report.rejected.sort((one, other) => one.row - other.row);
  if (isAtomic && report.rejected.length > 0) return refuseAll(report.rejected);
  return isDryRun ? { ...done(report), unchanged: true } : done(report);
}

/** Starts a new batch at each row that shares an identity with a row of the batch; sorts the batches and splits them. */
function* independentRows<Row>(
  rows: readonly Row[],
  identitiesOf: (row: Row) => readonly string[],
): Generator<readonly Row[]> {
  let together: { row: Row; identities: readonly string[] }[] = [];
  let taken = new Set<string>();
  for (const row of rows) {
    const identities = identitiesOf(row);
    if (identities.some((identity) => taken.has(identity))) {
      yield* chunks(inOrder(together), maxConcurrentRows);
      together = [];
      taken = new Set();
    }
    together.push({ row, identities });
    for (const identity of identities) taken.add(identity);
  }
  yield* chunks(inOrder(together), maxConcurrentRows);
}

function inOrder<Row>(rows: { row: Row; identities: readonly string[] }[]): readonly Row[] {
  const first = ({ identities }: { identities: readonly string[] }): string => identities[0] ?? '';
  return rows.sort((one, other) => (first(one) < first(other) ? -1 : 1)).map(({ row }) => row);
}

function* chunks<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

function refuseAll(rejected: readonly RejectedRow[]): Result<never> {
  const errors = rejected.map(({ row, ...fault }) => ({ parameter: `row ${row}`, ...fault }));
  return refuse('import_rejected', 'Nothing was imported, because some rows were rejected.', { errors });
}

/** Imported dates are in whole seconds. */
export function isSameSecond(one: number | null, other: number | null): boolean {
  return one === null || other === null ? one === other : Math.floor(one / 1000) === Math.floor(other / 1000);
}
