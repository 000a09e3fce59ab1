import type { Cell, Fields, Instant, Marked, Tone, Block, Shown } from './format.ts';

/**
 * Replaces control characters and line ends by visible characters such as ␛: text of a buyer must not control the
 * terminal or look like another line.
 */
export function toVisible(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, pictureOf)
    .replaceAll(/[\p{Bidi_Control}\u2028\u2029]/gu, replacement);
}

export function toVisibleLines(text: string): string {
  return text.split('\n').map(toVisible).join('\n');
}

const replacement = '\u{FFFD}';

function pictureOf(character: string): string {
  const code = character.charCodeAt(0);
  if (code === 0x7f) return '\u2421';
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : replacement;
}

type WidthOf = (text: string) => number;

/** Characters of one column, for which no library is needed: Latin, some punctuation, arrows, control pictures. */
const narrow = /^[\x20-\x7E\u00A1-\u00AC\u00AE-\u024F\u2013-\u2026\u2190-\u2193\u2400-\u2421]*$/;

/** The function that measures these texts. Loads a library only if they need it. */
export async function measureOf(texts: Iterable<string>): Promise<WidthOf> {
  for (const text of texts) {
    if (narrow.test(text)) continue;
    const { default: widthOf } = await import('string-width');
    return (measured) => (narrow.test(measured) ? measured.length : widthOf(measured));
  }
  return (text) => text.length;
}

const units = [
  ['year', 365 * 86_400, 730 * 86_400],
  ['month', 30 * 86_400, 60 * 86_400],
  ['day', 86_400, 48 * 3600],
  ['hour', 3600, 7200],
  ['minute', 60, 60],
  ['second', 1, 2],
] as const;

let format: Intl.RelativeTimeFormat | undefined;

/** Writes the distance from now (epoch ms) in whole units: `3 min ago`, `in 40 sec`. */
function formatDistance(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  // The largest unit of which there is more than one, so that rounding loses little.
  const [unit, size] = units.find(([, , from]) => Math.abs(seconds) >= from) ?? [null, 1];
  if (unit === null) return 'now';
  format ??= new Intl.RelativeTimeFormat('en', { style: 'short', numeric: 'always' });
  return format.format(Math.round(seconds / size), unit).replace('.', '');
}

/** A part of a line, without control characters. */
export interface Span {
  readonly text: string;
  readonly tone?: Tone | 'heading' | undefined;
}

interface CellText {
  readonly spans: readonly Span[];
  readonly isWhole: boolean;
}

/** Writes a point in time: the datetime, its distance from now, or both. */
type WriteInstant = (instant: Instant) => string;

/** Writes both. `now` in epoch ms. */
function inFull(now: number): WriteInstant {
  return ({ time, isBrief }) => (isBrief ? distance(time, now) : `${time} (${distance(time, now)})`);
}

/** Writes the distance alone, for a table on a terminal. */
function inShort(now: number): WriteInstant {
  return ({ time }) => distance(time, now);
}

/** Writes the datetime alone: a file is read later. */
const asWritten: WriteInstant = ({ time }) => time;

function distance(time: string, now: number): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? time : formatDistance(at, now);
}

function readCell(cell: Cell, writeInstant: WriteInstant): CellText | null {
  if (cell === null || cell === undefined) return null;
  if (typeof cell !== 'object') return { spans: [{ text: toVisible(String(cell)) }], isWhole: false };
  if ('time' in cell) return { spans: [{ text: toVisible(writeInstant(cell)) }], isWhole: true };
  if ('text' in cell) return { spans: [spanOf(cell)], isWhole: cell.isWhole ?? false };
  const read = cell.map((part) => readCell(part, writeInstant));
  return { spans: read.flatMap((each) => each?.spans ?? []), isWhole: false };
}

function spanOf({ text, tone }: Marked): Span {
  return { text: toVisible(text), tone };
}

function widthOfSpans(spans: readonly Span[], widthOf: WidthOf): number {
  return spans.reduce((sum, { text }) => sum + widthOf(text), 0);
}

const ellipsis = '…';

/** Cuts a line to a width. A cut line ends with an ellipsis. */
function cut(spans: readonly Span[], width: number, widthOf: WidthOf): readonly Span[] {
  if (widthOfSpans(spans, widthOf) <= width) return spans;
  const spansThatFit: Span[] = [];
  let room = width - 1;
  for (const span of spans) {
    const text = startOf(span.text, room, widthOf);
    spansThatFit.push({ ...span, text });
    room -= widthOf(text);
    if (text !== span.text) break;
  }
  return [...spansThatFit, { text: ellipsis }];
}

/** The first graphemes that fit into a width. */
function startOf(text: string, width: number, widthOf: WidthOf): string {
  let start = '';
  let used = 0;
  // A limit for the work, with room for characters of no width.
  for (const { segment } of new Intl.Segmenter('en').segment(text.slice(0, width * 8 + 64))) {
    used += widthOf(segment);
    if (used > width) return start;
    start += segment;
  }
  return start;
}

/** Wraps a line between words. A word that is too long has a line of its own. */
function wrap(spans: readonly Span[], width: number, widthOf: WidthOf): readonly (readonly Span[])[] {
  const lines: Span[][] = [[]];
  let used = 0;
  for (const { text, tone } of spans) {
    for (const word of text.split(/(?<= )/)) {
      const wordWidth = widthOf(word.trimEnd());
      if (used > 0 && used + wordWidth > width) {
        lines.push([]);
        used = 0;
      }
      lines.at(-1)?.push({ text: word, tone });
      used += widthOf(word);
    }
  }
  return lines;
}

/** The width of the terminal, null for a pipe, and the daemon's time. */
interface Layout {
  readonly columns: number | null;
  /** Epoch ms. */
  readonly now: number;
}

export type Line = readonly Span[];

type Row = readonly (CellText | null)[];
type Page = { readonly columns: number | null; readonly widthOf: WidthOf };
type Laid = (page: Page) => readonly Line[];

const gap = 2;
/** The smallest widths to which a column is cut, and to which a value is wrapped. */
const minColumn = 8;
const minValue = 20;

export async function renderLayout(shown: Shown, layout: Layout): Promise<readonly Line[]> {
  const parts = isList(shown) ? shown : [shown];
  const texts: string[] = [];
  const layouts = parts.map((part) => readPart(part, layout, texts));
  const page = { columns: layout.columns, widthOf: await measureOf(texts) };
  return layouts.flatMap((lay, index) => (index === 0 ? lay(page) : [[], ...lay(page)]));
}

function isList(shown: Shown): shown is readonly (string | Block)[] {
  return Array.isArray(shown);
}

/** Collects the texts of a part, so that they can be measured, and returns the function that lays it out. */
function readPart(part: string | Block, { columns, now }: Layout, texts: string[]): Laid {
  if (typeof part === 'string') {
    const lines = toVisibleLines(part).split('\n');
    return () => lines.map((text) => [{ text }]);
  }
  const note = (row: Row): Row => {
    for (const cell of row) texts.push(...(cell?.spans ?? []).map(({ text }) => text));
    return row;
  };
  if (part.kind === 'fields') {
    const fields = readFields(part.fields, now);
    note(fields.map(([, value]) => value));
    return (page) => layFields(fields, page);
  }
  if (part.rows.length === 0) return () => [[{ text: 'none' }]];
  // Some rows may have more columns than others.
  const names = [...new Set(part.rows.flatMap((row) => Object.keys(row)))];
  const writeInstant = columns === null ? asWritten : inShort(now);
  const rows = part.rows.map((row) => note(names.map((name) => readCell(row[name], writeInstant))));
  return (page) =>
    layTable(names, rows, page) ??
    layRecords(
      part.rows.map((row) => readFields(Object.entries(row), now)),
      page,
    );
}

type Field = readonly [name: string, value: CellText];

function readFields(fields: Fields, now: number): readonly Field[] {
  return fields.flatMap(([name, cell]) => {
    const value = readCell(cell, inFull(now));
    return value === null ? [] : [[name, value] as const];
  });
}

/** Writes names and values in two columns, and wraps long values. */
function layFields(fields: readonly Field[], { columns, widthOf }: Page): readonly Line[] {
  const names = Math.max(0, ...fields.map(([name]) => name.length)) + gap;
  const room = columns === null ? Infinity : columns - names;
  return fields.flatMap(([name, { spans }]) => {
    const lines = room < minValue ? [spans] : wrap(spans, room, widthOf);
    return lines.map((line, index) => [{ text: (index === 0 ? name : '').padEnd(names) }, ...line]);
  });
}

/** Writes each record as fields, if a table would be too wide. */
function layRecords(records: readonly (readonly Field[])[], page: Page): readonly Line[] {
  return records.flatMap((fields, index) =>
    index === 0 ? layFields(fields, page) : [[], ...layFields(fields, page)],
  );
}

const nothing: CellText = { spans: [{ text: '-', tone: 'faint' }], isWhole: false };

/** Writes a table that fits; null if that would cut ids, or columns too far. */
function layTable(names: readonly string[], rows: readonly Row[], { columns, widthOf }: Page): Line[] | null {
  const heads = names.map((name) => ({
    spans: [{ text: name.toUpperCase(), tone: 'heading' as const }],
    isWhole: false,
  }));
  const lines = [heads, ...rows.map((row) => row.map((cell) => cell ?? nothing))];
  const widths = names.map((_, column) => widest(lines, column, widthOf));
  const cuttable = names.map((_, column) => !lines.some((line) => line[column]?.isWhole));
  const fitted = columns === null ? widths : fit(widths, cuttable, columns);
  if (fitted === null) return null;
  return lines.map((line) => line.flatMap(({ spans }, column) => layCell(spans, column, fitted, widthOf)));
}

function widest(lines: readonly (readonly CellText[])[], column: number, widthOf: WidthOf): number {
  return lines.reduce((max, line) => Math.max(max, widthOfSpans(line[column]?.spans ?? [], widthOf)), 0);
}

function layCell(
  spans: readonly Span[],
  column: number,
  widths: readonly number[],
  widthOf: WidthOf,
): readonly Span[] {
  const width = widths[column] ?? 0;
  const shown = cut(spans, width, widthOf);
  if (column === widths.length - 1) return shown;
  return [...shown, { text: ' '.repeat(width - widthOfSpans(shown, widthOf) + gap) }];
}

/** Narrows the widest columns until all fit; null if they cannot. */
function fit(
  widths: readonly number[],
  cuttable: readonly boolean[],
  columns: number,
): readonly number[] | null {
  const fitted = widths.map((width, column) => (cuttable[column] ? Math.min(width, columns) : width));
  let excess = fitted.reduce((sum, width) => sum + width + gap, -gap) - columns;
  for (; excess > 0; excess -= 1) {
    const widestColumn = Math.max(...fitted.filter((_, column) => cuttable[column]));
    if (widestColumn <= minColumn) return null;
    const column = fitted.findIndex((width, at) => cuttable[at] && width === widestColumn);
    fitted[column] = widestColumn - 1;
  }
  return fitted;
}

interface ProgressBar {
  /** Sets the progress, and the text next to the bar. */
  readonly update: (done: number, note: string) => void;
  readonly setTotal: (total: number) => void;
  readonly stop: () => void;
}

/** Starts a progress bar on standard error; null if that is no terminal. */
export async function startProgress(total: number): Promise<ProgressBar | null> {
  if (!process.stderr.isTTY) return null;
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({
    format: '{bar} {percentage}% | {note} | {eta_formatted} left',
    clearOnComplete: true,
    hideCursor: true,
    stream: process.stderr,
  });
  bar.start(total, 0, { note: '' });
  return {
    update: (done, note) => bar.update(done, { note }),
    setTotal: (changed) => bar.setTotal(changed),
    stop: () => bar.stop(),
  };
}
