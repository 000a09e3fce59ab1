import type { Value } from './source.ts';
import type { MovedTable } from './tables.ts';

/** What stands for a character in the text format of COPY (https://www.postgresql.org/docs/current/sql-copy.html). */
const escapes: Readonly<Record<string, string>> = {
  '\\': String.raw`\\`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
};

/** Gives what writes a row of a table as a line for COPY. */
export function copyText({ columns, booleans }: MovedTable): (row: readonly Value[]) => string {
  const isBoolean = columns.map((column) => booleans.includes(column));
  return (row) => `${row.map((value, index) => cell(value, isBoolean[index] === true)).join('\t')}\n`;
}

function cell(value: Value, isBoolean: boolean): string {
  if (value === null) return String.raw`\N`;
  if (typeof value === 'string') return value.replaceAll(/[\\\n\r\t]/g, (found) => escapes[found] ?? found);
  if (!isBoolean) return String(value);
  return value === 0 ? 'f' : 't';
}
