import type { Cell, Instant, Marked, Tone } from '../format.ts';
import { formatDistance } from './relative-time.ts';
import { toVisible } from './visible.ts';
import type { WidthOf } from './width.ts';

/** A part of a line: visible characters only. */
export interface Span {
  readonly text: string;
  readonly tone?: Tone | 'heading' | undefined;
}

/** What a cell shows. */
export interface CellText {
  readonly spans: readonly Span[];
  readonly isWhole: boolean;
}

/** Writes an instant: in full, as its distance from now, or both. */
export type WriteInstant = (instant: Instant) => string;

/** Both, for where there is room; `now` in epoch ms. */
export function inFull(now: number): WriteInstant {
  return ({ time, isBrief }) => (isBrief ? distance(time, now) : `${time} (${distance(time, now)})`);
}

/** The distance alone, for a person at a terminal. */
export function inShort(now: number): WriteInstant {
  return ({ time }) => distance(time, now);
}

/** As the daemon wrote it: a file is read later. */
export const asWritten: WriteInstant = ({ time }) => time;

function distance(time: string, now: number): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? time : formatDistance(at, now);
}

/** Makes visible what a cell holds; null: there is nothing. */
export function readCell(cell: Cell, writeInstant: WriteInstant): CellText | null {
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

/** The width of a line. */
export function widthOfSpans(spans: readonly Span[], widthOf: WidthOf): number {
  return spans.reduce((sum, { text }) => sum + widthOf(text), 0);
}

const ellipsis = '…';

/** Cuts a line so that it is no wider than told; what is cut ends in an ellipsis. */
export function cut(spans: readonly Span[], width: number, widthOf: WidthOf): readonly Span[] {
  if (widthOfSpans(spans, widthOf) <= width) return spans;
  const kept: Span[] = [];
  let room = width - 1;
  for (const span of spans) {
    const text = startOf(span.text, room, widthOf);
    kept.push({ ...span, text });
    room -= widthOf(text);
    if (text !== span.text) break;
  }
  return [...kept, { text: ellipsis }];
}

/** The first characters, as people see them, that fit into a width. */
function startOf(text: string, width: number, widthOf: WidthOf): string {
  let start = '';
  let used = 0;
  // So many characters fit at most, but for those that take no room.
  for (const { segment } of new Intl.Segmenter('en').segment(text.slice(0, width * 8 + 64))) {
    used += widthOf(segment);
    if (used > width) return start;
    start += segment;
  }
  return start;
}

/** Breaks a line between words into lines that are no wider than told; a longer word stands alone. */
export function wrap(spans: readonly Span[], width: number, widthOf: WidthOf): readonly (readonly Span[])[] {
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
