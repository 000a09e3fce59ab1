import type { Block, Cell, Shown } from '../format.ts';
import {
  asWritten,
  type CellText,
  cut,
  inFull,
  inShort,
  readCell,
  type Span,
  widthOfSpans,
  wrap,
} from './span.ts';
import { toVisibleLines } from './text.ts';
import { measureOf, type WidthOf } from './text.ts';

/** The width of the terminal, null for a pipe, and the daemon's time. */
export interface Layout {
  readonly columns: number | null;
  /** Epoch ms. */
  readonly now: number;
}

/** The parts of a line, without control characters. */
export type Line = readonly Span[];

type Row = readonly (CellText | null)[];
type Page = { readonly columns: number | null; readonly widthOf: WidthOf };
type Laid = (page: Page) => readonly Line[];

const gap = 2;
/** The smallest widths to which a column is cut, and to which a value is wrapped. */
const minColumn = 8;
const minValue = 20;

export async function layOut(shown: Shown, layout: Layout): Promise<readonly Line[]> {
  const parts = isList(shown) ? shown : [shown];
  const texts: string[] = [];
  const laid = parts.map((part) => readPart(part, layout, texts));
  const page = { columns: layout.columns, widthOf: await measureOf(texts) };
  return laid.flatMap((lay, index) => (index === 0 ? lay(page) : [[], ...lay(page)]));
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
  const [first] = part.rows;
  if (first === undefined) return () => [[{ text: 'none' }]];
  const writeInstant = columns === null ? asWritten : inShort(now);
  const rows = part.rows.map((row) =>
    note(Object.values(row).map((cell: Cell) => readCell(cell, writeInstant))),
  );
  return (page) =>
    layTable(Object.keys(first), rows, page) ??
    layRecords(
      part.rows.map((row) => readFields(row, now)),
      page,
    );
}

type Field = readonly [name: string, value: CellText];

function readFields(fields: Readonly<Record<string, Cell>>, now: number): readonly Field[] {
  return Object.entries(fields).flatMap(([name, cell]) => {
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
