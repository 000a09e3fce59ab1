import type { Figure } from './figure.ts';
import { isReached, type Goal, type Row, type Source, type Unit } from './theme.ts';

/** The cells of a row: name, median, lowest and highest round, goal, whether it is reached, measured values. */
function cellsOf({ what, unit, figure, goal, from, note }: Row): string[] {
  const sources = Object.entries(from).map(([name, source]) => `${name} ${showSource(source)}`);
  const last = [sources.join(', '), note ?? ''].filter((text) => text !== '').join('; ');
  if (figure === null) return [what, '–', '', showGoal(goal, unit), '', last];
  const verdict = goal === null ? '' : isReached(goal, figure) ? 'reached' : 'missed';
  return [what, show(figure.median, unit), showSpread(figure, unit), showGoal(goal, unit), verdict, last];
}

/** A row for a terminal. */
export function textLine(row: Row): string {
  const [what = '', median = '', spread = '', goal = '', verdict = '', last = ''] = cellsOf(row);
  const cells = [
    what.padEnd(62),
    median.padStart(11),
    spread.padEnd(19),
    goal.padEnd(9),
    verdict.padEnd(8),
    last,
  ];
  return cells.join(' ').trimEnd();
}

const marks = ['<!-- npm run bench -->', '<!-- end -->'] as const;

/** Replaces the table between the two marks of a Markdown text. */
export function withTable(
  text: string,
  { heading, rows }: { heading: string; rows: readonly Row[] },
): string {
  const [before, between] = text.split(marks[0]);
  const after = between?.split(marks[1])[1];
  if (before === undefined || after === undefined) throw new Error(`there is no ${marks[0]} … ${marks[1]}`);
  return [before, marks[0], `\n\n${heading}:\n\n${markdownTable(rows)}\n\n`, marks[1], after].join('');
}

/** Formats the table as prettier does. */
function markdownTable(rows: readonly Row[]): string {
  const withoutGoals = rows.map(cellsOf).map(([what = '', median = '', spread = '', , , last = '']) => {
    return [what, median, spread, last];
  });
  const lines = [['', 'median', 'lowest–highest', 'measured'], ...withoutGoals];
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(3, ...lines.map((cells) => (cells[column] ?? '').length)),
  );
  const join = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const padded = lines.map((cells) => join(cells.map((cell, column) => cell.padEnd(widths[column] ?? 0))));
  const rule = join(widths.map((width) => '-'.repeat(width)));
  return [padded[0], rule, ...padded.slice(1)].join('\n');
}

function showSource({ figure, unit, processorMicros }: Source): string {
  const reached = show(figure.median, unit);
  return processorMicros === null || unit !== '/s' ? reached : `${reached} at ${show(processorMicros, 'µs')}`;
}

function showGoal(goal: Goal | null, unit: Unit): string {
  if (goal === null) return '';
  return 'atLeast' in goal ? `≥ ${show(goal.atLeast, unit)}` : `≤ ${show(goal.atMost, unit)}`;
}

function showSpread({ low, high }: Figure, unit: Unit): string {
  return low === high ? '' : `${show(low, unit, false)}–${show(high, unit, false)}`;
}

function show(value: number, unit: Unit, withUnit = true): string {
  const digits = unit === '×' || (Math.abs(value) < 10 && unit === 'ms') ? 2 : 0;
  const text = value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  if (!withUnit) return text;
  return unit === '/s' ? `${text}/s` : `${text} ${unit}`;
}
