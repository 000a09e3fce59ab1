import { type Decided, labels, type Noun } from './import-mapping.ts';

export type Rejected = { row: number; code: string; detail: string; value?: string };

type Kind = { kind: string; first: Rejected; rows: number };

/** The rejected rows by what is wrong, the most frequent first. What is in quotation marks is a cell. */
export function kindsOf(rejected: readonly Rejected[]): readonly Kind[] {
  const kinds = new Map<string, Kind>();
  for (const row of rejected) {
    const kind = row.detail.replaceAll(/"[^"]*"/g, '""');
    const { first = row, rows = 0 } = kinds.get(kind) ?? {};
    kinds.set(kind, { kind, first, rows: rows + 1 });
  }
  return [...kinds.values()].toSorted((one, other) => other.rows - one.rows);
}

/** An error that begins with a parameter begins with the name of the field, and of the column in the file. */
export function inWordsOfFile(detail: string, noun: Noun, columns: Decided): string {
  const [ours = ''] = /^[a-z_]+(?= )/.exec(detail) ?? [];
  const label = labels[noun][ours];
  if (label === undefined) return detail;
  const theirs = columns.find(([, { as }]) => as === ours)?.[0].name;
  const named = theirs === undefined || theirs === ours ? label : `${label} (${theirs})`;
  return named + detail.slice(ours.length);
}
