import type { Cell, Instant, Marked, Tone } from '../format.ts';
import { formatDistance } from './text.ts';
import { toVisible } from './text.ts';
import type { WidthOf } from './text.ts';

/** A part of a line, without control characters. */
export interface Span {
  readonly text: string;
  readonly tone?: Tone | 'heading' | undefined;
}

/** The text of a cell. */
export interface CellText {
  readonly spans: readonly Span[];
  readonly isWhole: boolean;
}

/** Writes a point in time: the datetime, its distance from now, or both. */
export type WriteInstant = (instant: Instant) => string;

/** Writes both. `now` in epoch ms. */
export function inFull(now: number): WriteInstant {
  return ({ time, isBrief }) => (isBrief ? distance(time, now) : `${time} (${distance(time, now)})`);
}

/** Writes the distance alone, for a table on a terminal. */
export function inShort(now: number): WriteInstant {
  return ({ time }) => distance(time, now);
}

/** Writes the datetime alone: a file is read later. */
export const asWritten: WriteInstant = ({ time }) => time;

function distance(time: string, now: number): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? time : formatDistance(at, now);
}

/** Reads a cell; null if it has no value. */
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

export function widthOfSpans(spans: readonly Span[], widthOf: WidthOf): number {
  return spans.reduce((sum, { text }) => sum + widthOf(text), 0);
}

const ellipsis = '…';

/** Cuts a line to a width. A cut line ends with an ellipsis. */
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
