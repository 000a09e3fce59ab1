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

/** A row with the name of its theme. */
export type ThemeRow = Row & { readonly theme: string };

/** Replaces the table between the two marks of a Markdown text. */
export function withTable(
  text: string,
  { heading, rows }: { heading: string; rows: readonly ThemeRow[] },
): string {
  const [before, between] = text.split(marks[0]);
  const after = between?.split(marks[1])[1];
  if (before === undefined || after === undefined) throw new Error(`there is no ${marks[0]} … ${marks[1]}`);
  return [before, marks[0], `\n\n${heading}:\n\n${markdownTable(rows)}\n\n`, marks[1], after].join('');
}

const columns = ['theme', 'row', 'median', 'lowest–highest', 'goal', 'result', 'measured'];

/** Formats the table as prettier does. */
function markdownTable(rows: readonly ThemeRow[]): string {
  const lines = [columns, ...rows.map((row) => [row.theme, ...cellsOf(row)])];
  const widths = columns.map((_, column) =>
    Math.max(3, ...lines.map((cells) => (cells[column] ?? '').length)),
  );
  const join = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const padded = lines.map((cells) => join(cells.map((cell, column) => cell.padEnd(widths[column] ?? 0))));
  const rule = join(widths.map((width) => '-'.repeat(width)));
  return [padded[0], rule, ...padded.slice(1)].join('\n');
}

/** The rows of the table between the two marks of a Markdown text: theme, name and result (`reached`, `missed`). */
export function rowsInTable(text: string): { theme: string; what: string; result: string }[] {
  const table = text.split(marks[0])[1]?.split(marks[1])[0] ?? '';
  return table
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .slice(2)
    .map(([, theme = '', what = '', , , , result = '']) => ({ theme, what, result }));
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
