/** How a part of a text stands out where there are colours; the words alone say the same. */
export type Tone = 'good' | 'warning' | 'bad' | 'faint';

/** A part of a text: `isWhole`: never cut, because somebody will type it again. */
export interface Marked {
  readonly text: string;
  readonly tone?: Tone;
  readonly isWhole?: boolean;
}

/** An instant (RFC 3339). `isBrief`: said only as how long ago, or in how long, it is. */
export interface Instant {
  readonly time: string;
  readonly isBrief: boolean;
}

type Part = string | Marked | Instant;

/** A value as it may come in an answer; `null` and `undefined` have nothing to show. */
export type Cell = string | number | boolean | null | undefined | Marked | Instant | readonly Part[];

/** What a person reads, laid out when it is known where: a terminal of some width, or a pipe. */
export type Block =
  | { readonly kind: 'fields'; readonly fields: Readonly<Record<string, Cell>> }
  | { readonly kind: 'table'; readonly rows: readonly Readonly<Record<string, Cell>>[] };

/** Blocks and plain texts, an empty line between two. */
export type Shown = string | Block | readonly (string | Block)[];

/** Shows names and values in two columns, leaving out what has no value. */
export function formatFields(fields: Readonly<Record<string, Cell>>): Block {
  return { kind: 'fields', fields };
}

/** Shows records as a table under their column names. */
export function formatTable(rows: readonly Readonly<Record<string, Cell>>[]): Block {
  return { kind: 'table', rows };
}

/** An instant as the daemon wrote it, shown by how far it is from now and, where there is room, as it is. */
export function instant(at: string): Instant;
export function instant(at: string | null | undefined): Instant | null;
export function instant(at: string | null | undefined): Instant | null {
  return at === null || at === undefined ? null : { time: at, isBrief: false };
}

/** An instant that is shown only by how far it is from now. */
export function brief(at: string): Instant {
  return { time: at, isBrief: true };
}

/** A text that stands out. */
export function toned(text: string, tone: Tone): Marked {
  return { text, tone };
}

/** A text that is never cut, such as an id. */
export function whole(text: string): Marked;
export function whole(text: string | null): Marked | null;
export function whole(text: string | null): Marked | null {
  return text === null ? null : { text, isWhole: true };
}

/** Writes seconds in the two largest units that they fill. */
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

/** Writes cents with a decimal point; the currency is the seller's. */
export function formatCents(cents: number): string {
  return (cents / 100).toFixed(2);
}
