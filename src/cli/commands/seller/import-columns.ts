import { CsvUnreadable, findMiswritten, separatorFault, type ToColumns } from '../../../wire/bulk/csv.ts';
import { UsageError } from '../../command.ts';

/** The columns that a file may and must have. */
export interface Columns {
  readonly required: readonly string[];
  readonly optional: readonly string[];
}

/**
 * Names the columns of a file as the interface does, by `--map`; what it does not know is not sent. Throws `UsageError`
 * where the option is wrong.
 */
export function columnsBy(map: string, { required, optional }: Columns): ToColumns {
  const known = [...required, ...optional];
  const pairs = readMap(map, known);
  return (header) => {
    const fault = separatorFault(header);
    if (fault !== null) throw new CsvUnreadable(fault);
    const columns = [...header];
    for (const [ours, theirs] of pairs) {
      const place = header.indexOf(theirs);
      if (place === -1) throw new UsageError(`--map ${ours}=${theirs}: the header has ${header.join(', ')}`);
      columns.forEach((name, index) => {
        if (name === ours && index !== place) columns[index] = '';
      });
      columns[place] = ours;
    }
    refuseMissing(required, columns, header);
    refuseMiswritten(columns, known);
    return columns.map((name) => (known.includes(name) ? name : ''));
  };
}

function readMap(map: string, known: readonly string[]): (readonly [ours: string, theirs: string])[] {
  // A name of theirs may have a comma in it.
  const given = map.split(/,(?=\w+=)/).filter((each) => each !== '');
  const named = new Set<string>();
  return given.map((each) => {
    const [ours = '', ...theirs] = each.split('=');
    if (theirs.length === 0) throw new UsageError(`--map ${each}: it is COLUMN=THEIRS`);
    if (!known.includes(ours)) throw new UsageError(`--map ${each}: the columns are ${known.join(', ')}`);
    const pair = [ours, theirs.join('=')] as const;
    for (const name of [ours, `${pair[1]} of the file`]) {
      if (named.has(name)) throw new UsageError(`--map ${each}: ${name} is named twice`);
      named.add(name);
    }
    return pair;
  });
}

function refuseMissing(
  required: readonly string[],
  columns: readonly string[],
  header: readonly string[],
): void {
  const missing = required.filter((name) => !columns.includes(name));
  if (missing.length === 0) return;
  const advice = `It has ${header.join(', ')}: name yours by --map ${missing[0] ?? ''}=THEIRS.`;
  throw new CsvUnreadable(`The header does not name ${missing.join(', ')}. ${advice}`);
}

function refuseMiswritten(columns: readonly string[], known: readonly string[]): void {
  const found = findMiswritten(columns, known);
  if (found.length === 0) return;
  const theirs = found.map((each) => each.theirs).join(', ');
  const map = found.map((each) => `${each.ours}=${each.theirs}`).join(',');
  throw new CsvUnreadable(
    `The header names ${theirs}, and columns are in small letters: say that they are meant by --map ${map}, or give them other names.`,
  );
}
