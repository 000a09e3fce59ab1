import { done, refuse, type Result } from '../../domain/problem/problem.ts';

/** A row that was not imported; rows are numbered by the caller. */
export type RejectedRow = { row: number; code: string; detail: string };

/** What became of the rows of an import. */
export type ImportReport = { imported: number; unchanged: number; rejected: RejectedRow[] };

/** The rows of an import. `rejected`: those that could not even be read. */
export type ImportRows<Row> = {
  rows: readonly Row[];
  rejected: readonly RejectedRow[];
  /** All or none. */
  isAtomic: boolean;
  /** Says what would become of the rows, and writes nothing. */
  isDryRun: boolean;
};

/** What became of one row; what was here already, and is as the row says, is unchanged. */
export type ImportedRow = 'imported' | 'unchanged' | { code: string; detail: string };

/** So many rows are under way together at most. */
const rowsTogether = 500;

/** How one row is imported. */
export type RowImport<Row> = {
  importOne: (row: Row) => Promise<ImportedRow>;
  /** What no two rows under way together may have in common, since the later one decides by the earlier. */
  identitiesOf: (row: Row) => readonly string[];
};

/**
 * Imports the rows as if one after the other, and refuses all of them where one of an atomic import is rejected. Those
 * that have nothing in common are under way together: an engine on another machine is then asked for all at once. They
 * go in the order of their identities, whatever the file's: so an index is written page by page.
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

/**
 * Divides rows where one has something in common with another since the last division; in between, sorts and chunks
 * them.
 */
function* independentRows<Row>(
  rows: readonly Row[],
  identitiesOf: (row: Row) => readonly string[],
): Generator<readonly Row[]> {
  let together: { row: Row; identities: readonly string[] }[] = [];
  let taken = new Set<string>();
  for (const row of rows) {
    const identities = identitiesOf(row);
    if (identities.some((identity) => taken.has(identity))) {
      yield* chunks(inOrder(together), rowsTogether);
      together = [];
      taken = new Set();
    }
    together.push({ row, identities });
    for (const identity of identities) taken.add(identity);
  }
  yield* chunks(inOrder(together), rowsTogether);
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
  return refuse('import_rejected', 'Nothing was imported: some rows cannot be.', { errors });
}

/** Whether two instants are written alike: dates are in whole seconds. */
export function isSameSecond(one: number | null, other: number | null): boolean {
  return one === null || other === null ? one === other : Math.floor(one / 1000) === Math.floor(other / 1000);
}
