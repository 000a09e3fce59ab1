import type { ArgumentsCamelCase, Argv } from 'yargs';
import { z } from 'zod';
import { type Command, defineCommand, type GlobalOptions } from '../command.ts';
import { type Cell, formatTable } from '../format.ts';
import { ask } from './ask.ts';
import type { Answer, Values } from './call.ts';

/** What every list takes. */
export interface PageOptions extends GlobalOptions {
  readonly limit: number;
  readonly offset: number;
}

/** A list as the daemon answers it, and as a table of it. */
export interface List<Item> {
  readonly path: string;
  /** The name of the list in the answer's `data`. */
  readonly member: string;
  readonly item: z.ZodType<Item>;
  /** The cells of an item by the names of their columns. */
  readonly row: (item: Item) => Readonly<Record<string, Cell>>;
}

/** Further options of a list, and the query that they become. */
export interface Filter<Options extends PageOptions> {
  readonly options: (yargs: Argv<PageOptions>) => Argv<Options>;
  readonly query: (args: ArgumentsCamelCase<Options>) => Values;
  /** What follows the path where the list is that of one thing. */
  readonly within?: (args: ArgumentsCamelCase<Options>) => string;
}

/** Makes a command that shows a part of a list. */
export function defineList<Item>(list: List<Item>): Command {
  return defineFilteredList(list, { options: (yargs) => yargs, query: () => ({}) });
}

/** Makes a command that shows a part of those items of a list that its options choose. */
export function defineFilteredList<Item, Options extends PageOptions>(
  { path, member, item, row }: List<Item>,
  { options, query, within = () => '' }: Filter<Options>,
): Command {
  const schema = z.object({ [member]: z.array(item) });
  return defineCommand(
    (yargs) => options(takePage(yargs)),
    (args, output) => {
      const { limit, offset } = args;
      const show = (data: z.infer<typeof schema>, answer: Answer): string =>
        formatPage((data[member] ?? []).map(row), answer, offset);
      const request = { path: `${path}${within(args)}`, query: { ...query(args), limit, offset } };
      return ask(args, output, request, { schema, show });
    },
  );
}

function takePage(yargs: Argv<GlobalOptions>): Argv<PageOptions> {
  return yargs
    .option('limit', { type: 'number', default: 100, requiresArg: true, describe: 'How many, 1 to 100' })
    .option('offset', { type: 'number', default: 0, requiresArg: true, describe: 'How many to pass over' });
}

/** Writes a part of a list, and how to go on where there is more. */
function formatPage(
  rows: readonly Readonly<Record<string, Cell>>[],
  { headers }: Answer,
  offset: number,
): string {
  const total = Number(headers['x-total-count'] ?? 0);
  const next = offset + rows.length;
  const more = total > next && rows.length > 0 ? `\n\n${next} of ${total}; go on with --offset ${next}` : '';
  return `${formatTable(rows)}${more}`;
}
