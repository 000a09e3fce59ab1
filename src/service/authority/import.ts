import { done, refuse, type Result } from '../../domain/problem.ts';

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

/** Imports each row, and refuses all of them where one of an atomic import is rejected. */
export async function importEach<Row extends { row: number }>(
  { rows, rejected, isAtomic }: ImportRows<Row>,
  importOne: (row: Row) => Promise<ImportedRow>,
): Promise<Result<ImportReport>> {
  const report: ImportReport = { imported: 0, unchanged: 0, rejected: [...rejected] };
  for (const row of rows) {
    const outcome = await importOne(row);
    if (typeof outcome === 'string') report[outcome] += 1;
    else report.rejected.push({ row: row.row, ...outcome });
  }
  report.rejected.sort((one, other) => one.row - other.row);
  if (isAtomic && report.rejected.length > 0) return refuseAll(report.rejected);
  return done(report);
}

function refuseAll(rejected: readonly RejectedRow[]): Result<never> {
  const errors = rejected.map(({ row, ...fault }) => ({ parameter: `row ${row}`, ...fault }));
  return refuse('import_rejected', 'Nothing was imported: some rows cannot be.', { errors });
}

/** Whether two instants are written alike: dates are in whole seconds. */
export function isSameSecond(one: number | null, other: number | null): boolean {
  return one === null || other === null ? one === other : Math.floor(one / 1000) === Math.floor(other / 1000);
}
