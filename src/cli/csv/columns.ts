import { CsvUnreadable, findMiswritten, separatorFault, type ToColumns } from '../../wire/bulk/csv.ts';
import { UsageError } from '../command.ts';

/** The columns that a file may and must have. */
export interface Columns {
  readonly required: readonly string[];
  readonly optional: readonly string[];
}

/** Renames the columns of a file by `--map`. Unknown columns are not sent. Throws a `UsageError` for a wrong option. */
export function columnsBy(map: string, { required, optional }: Columns): ToColumns {
  const known = [...required, ...optional];
  const pairs = readMap(map, known);
  return (header) => {
    const fault = separatorFault(header);
    if (fault !== null) throw new CsvUnreadable(fault);
    const columns = [...header];
    for (const [ours, theirs] of pairs) {
      const position = header.indexOf(theirs);
      if (position === -1)
        throw new UsageError(`--map ${ours}=${theirs}: the header has ${header.join(', ')}`);
      columns.forEach((name, index) => {
        if (name === ours && index !== position) columns[index] = '';
      });
      columns[position] = ours;
    }
    rejectMissing(required, columns, header);
    rejectMiswritten(columns, known);
    return columns.map((name) => (known.includes(name) ? name : ''));
  };
}

function readMap(map: string, known: readonly string[]): (readonly [ours: string, theirs: string])[] {
  // The name of a column in the file may contain a comma.
  const given = map.split(/,(?=\w+=)/).filter((each) => each !== '');
  const named = new Set<string>();
  return given.map((each) => {
    const [ours = '', ...theirs] = each.split('=');
    if (theirs.length === 0) throw new UsageError(`--map ${each}: use COLUMN=THEIRS`);
    if (!known.includes(ours)) throw new UsageError(`--map ${each}: the columns are ${known.join(', ')}`);
    const pair = [ours, theirs.join('=')] as const;
    for (const name of [ours, `${pair[1]} of the file`]) {
      if (named.has(name)) throw new UsageError(`--map ${each}: ${name} is named twice`);
      named.add(name);
    }
    return pair;
  });
}

function rejectMissing(
  required: readonly string[],
  columns: readonly string[],
  header: readonly string[],
): void {
  const missing = required.filter((name) => !columns.includes(name));
  if (missing.length === 0) return;
  const advice = `It has ${header.join(', ')}. Map the columns: --map ${missing[0] ?? ''}=THEIRS.`;
  throw new CsvUnreadable(`The header does not name ${missing.join(', ')}. ${advice}`);
}

function rejectMiswritten(columns: readonly string[], known: readonly string[]): void {
  const found = findMiswritten(columns, known);
  if (found.length === 0) return;
  const theirs = found.map((each) => each.theirs).join(', ');
  const map = found.map((each) => `${each.ours}=${each.theirs}`).join(',');
  throw new CsvUnreadable(
    `The header has ${theirs}, but column names are lower-case; use --map ${map}, or rename them.`,
  );
}
