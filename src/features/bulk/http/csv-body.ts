import { Readable } from 'node:stream';
import { ProblemError } from '../../../http/problem-error.ts';
import { CsvUnreadable, readCsv, separatorFault, type CsvRow } from '../../../wire/csv.ts';
import type { RawParameters } from '../../../wire/parameters.ts';
import { CsvRows, maximumRows } from '../wire/import.ts';

/** Reads a CSV file in a body: its rows become one member. Throws a problem if the body is no CSV. */
export async function readCsvBody(body: Buffer, member: string): Promise<RawParameters> {
  const rows: CsvRow[] = [];
  let header: readonly string[] = [];
  const toColumns = (names: readonly string[]): readonly string[] => {
    const fault = separatorFault(names);
    if (fault !== null) throw fault;
    header = names;
    return names;
  };
  try {
    for await (const more of readCsv(Readable.from([body]), toColumns)) {
      for (const row of more) rows.push(row);
      // The route refuses more rows, so the rest need not be read.
      if (rows.length > maximumRows) break;
    }
  } catch (error) {
    throw error instanceof CsvUnreadable ? new ProblemError('malformed_body', error.message) : error;
  }
  return new Map([[member, new CsvRows(header, rows)]]);
}
