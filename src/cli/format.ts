import type { Finding } from '../domain/finding.ts';

/** The colour of a part of a text. The text must make sense without colours. */
export type Tone = 'good' | 'warning' | 'bad' | 'faint';

/** A part of a text. `isWhole`: it is never cut, because people copy it. */
export interface Marked {
  readonly text: string;
  readonly tone?: Tone;
  readonly isWhole?: boolean;
}

/** A point in time (RFC 3339). `isBrief`: only its distance from now is shown. */
export interface Instant {
  readonly time: string;
  readonly isBrief: boolean;
}

type Part = string | Marked | Instant;

/** A value of a response. `null` and `undefined` are not shown. */
export type Cell = string | number | boolean | null | undefined | Marked | Instant | readonly Part[];

export type Fields = readonly (readonly [name: string, value: Cell])[];

/** Output for people. Its layout depends on the width of the terminal. */
export type Block =
  | { readonly kind: 'fields'; readonly fields: Fields }
  | { readonly kind: 'table'; readonly rows: readonly Readonly<Record<string, Cell>>[] };

/** Blocks and plain texts, with an empty line between them. */
export type Shown = string | Block | readonly (string | Block)[];

/** Shows names and values in two columns, without those that have no value. */
export function formatFields(fields: Readonly<Record<string, Cell>>): Block {
  return formatEntries(Object.entries(fields));
}

/** Shows fields of which several can have the same name. */
export function formatEntries(fields: Fields): Block {
  return { kind: 'fields', fields };
}

export function formatTable(rows: readonly Readonly<Record<string, Cell>>[]): Block {
  return { kind: 'table', rows };
}

/** A point in time: its distance from now and, if there is room, the datetime itself. */
export function instant(at: string): Instant;
export function instant(at: string | null | undefined): Instant | null;
export function instant(at: string | null | undefined): Instant | null {
  return at === null || at === undefined ? null : { time: at, isBrief: false };
}

export function brief(at: string): Instant {
  return { time: at, isBrief: true };
}

export function toned(text: string, tone: Tone): Marked {
  return { text, tone };
}

/** A text that is never cut, such as an id. */
export function whole(text: string): Marked;
export function whole(text: string | null): Marked | null;
export function whole(text: string | null): Marked | null {
  return text === null ? null : { text, isWhole: true };
}

/** Writes seconds in their two largest units: `2h 5m`. */
export function formatAge(seconds: number): string {
  const units = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'm'],
    [1, 's'],
  ] as const;
  const start = units.findIndex(([size]) => seconds >= size);
  if (start === -1) return '0s';
  const [[large, name], small] = [units[start] ?? units[3], units[start + 1]];
  const rest = small === undefined ? 0 : Math.floor((seconds % large) / small[0]);
  return `${Math.floor(seconds / large)}${name}${rest > 0 ? ` ${rest}${small?.[1]}` : ''}`;
}

/** Writes cents with a decimal point, in the seller's currency. */
export function formatCents(cents: number): string {
  return (cents / 100).toFixed(2);
}

/** Writes findings, one on each line: the level, the finding, and the advice. */
export function formatFindings(findings: readonly Finding[]): string {
  return findings
    .map(({ level, what, advice }) => `${level.padEnd(4)}  ${what}${advice === null ? '' : `  →  ${advice}`}`)
    .join('\n');
}

/** Breaks text into lines of at most so many columns. */
export function fillLines(text: string, columns: number): readonly string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.pop() ?? '';
    if (line === '') lines.push(word);
    else if (line.length + 1 + word.length <= columns) lines.push(`${line} ${word}`);
    else lines.push(line, word);
  }
  return lines;
}
