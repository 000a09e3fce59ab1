import type { Argv } from 'yargs';
import type { Answer } from '../client/call.ts';
import type { GlobalOptions } from '../command.ts';
import { type Cell, formatTable } from './layout.ts';

/** Declares which part of a list is wanted. */
export function takePage(
  yargs: Argv<GlobalOptions>,
): Argv<GlobalOptions & { limit: number; offset: number }> {
  return yargs
    .option('limit', { type: 'number', default: 100, requiresArg: true, describe: 'How many, 1 to 100' })
    .option('offset', { type: 'number', default: 0, requiresArg: true, describe: 'How many to pass over' });
}

/** Writes a part of a list, and how to go on where there is more. */
export function formatPage(
  rows: readonly Readonly<Record<string, Cell>>[],
  { headers }: Answer,
  offset: number,
): string {
  const total = Number(headers['x-total-count'] ?? 0);
  const next = offset + rows.length;
  const more = total > next && rows.length > 0 ? `\n\n${next} of ${total}; go on with --offset ${next}` : '';
  return `${formatTable(rows)}${more}`;
}
