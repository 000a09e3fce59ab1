import { z } from 'zod';
import { maxOffset } from '../../domain/page.ts';
import { type Command, defineCommand, type GlobalOptions } from '../command.ts';
import type { Syntax } from '../syntax/declaration.ts';
import { type Cell, formatTable, type Shown } from '../format.ts';
import { exitCode } from '../exit-code.ts';
import { type Asked, inquire, toldAt } from './ask.ts';
import type { Answer, Values } from './call.ts';

/** What every list takes. */
export interface PageOptions extends GlobalOptions {
  readonly limit: number;
  readonly offset: number;
  readonly all?: boolean | undefined;
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
  readonly options: (syntax: Syntax<PageOptions>) => Syntax<Options>;
  readonly query: (args: Options) => Values;
  /** What follows the path where the list is that of one thing. */
  readonly within?: (args: Options) => string;
}

/** Makes a command that shows a part of a list. */
export function defineList<Item>(
  list: List<Item>,
  declare: (syntax: Syntax<PageOptions>) => Syntax<PageOptions>,
): Command {
  return defineFilteredList(list, { options: declare, query: () => ({}) });
}

/** Makes a command that shows a part of those items of a list that its options choose. */
export function defineFilteredList<Item, Options extends PageOptions>(
  { path, member, item, row }: List<Item>,
  { options, query, within = () => '' }: Filter<Options>,
): Command {
  const schema = z.object({ [member]: z.array(item) });
  return defineCommand(
    (syntax) => options(takePage(syntax)),
    async (args, output) => {
      const where = `${path}${within(args)}`;
      const filter = query(args);
      const read = await readPages(
        args,
        async (page) => await inquire(args, { path: where, query: { ...filter, ...page } }, schema),
        member,
      );
      if (!read.ok) return read.complain(output);
      const { items, raw, total, answer } = read;
      const end = args.offset + items.length;
      const next = items.length > 0 && end < total ? end : null;
      if (args.json) output.printJson({ [member]: raw, total, next });
      else await output.show(formatPage(items.map(row), { total, next }), toldAt(answer));
      return exitCode.done;
    },
  );
}

type Pages<Item> =
  | {
      readonly ok: true;
      readonly items: Item[];
      readonly raw: unknown[];
      readonly total: number;
      /** The last one. */
      readonly answer: Answer;
    }
  | (Asked<never> & { readonly ok: false });

/**
 * Reads one page of a list, or with `--all` one after the other to its end. What is further than can be skipped is read
 * page by page, and left out.
 */
async function readPages<Item>(
  { limit, offset, all }: PageOptions,
  read: (page: Values) => Promise<Asked<Record<string, Item[]>>>,
  member: string,
): Promise<Pages<Item>> {
  const first = Math.min(offset, maxOffset);
  let left = offset - first;
  const wanted = all ? Infinity : limit;
  const items: Item[] = [];
  const raw: unknown[] = [];
  for (let page: Values = { limit: all || left > 0 ? largestPage : limit, offset: first }; ;) {
    const asked = await read(page);
    if (!asked.ok) return asked;
    const { answer } = asked;
    const got = asked.data[member] ?? [];
    items.push(...got.slice(left));
    raw.push(...((asked.raw as Record<string, unknown[]>)[member] ?? []).slice(left));
    left = Math.max(0, left - got.length);
    const cursor = cursorOf(answer.headers['link']);
    if (cursor === null || items.length >= wanted) {
      const total = Number(answer.headers['x-total-count'] ?? items.length);
      return { ok: true, items: items.slice(0, wanted), raw: raw.slice(0, wanted), total, answer };
    }
    page = { limit: largestPage, cursor };
  }
}

const largestPage = 100;

/** The cursor of the page that the header `Link` calls the next one (RFC 8288); null: there is none. */
function cursorOf(link: unknown): string | null {
  const [, target] = /^<([^>]*)>; rel="next"$/.exec(String(link)) ?? [];
  return target === undefined ? null : new URLSearchParams(target.split('?')[1]).get('cursor');
}

function takePage(syntax: Syntax<GlobalOptions>): Syntax<PageOptions> {
  return syntax
    .option('limit', { type: 'number', default: 100, describe: 'How many to show, 1 to 100' })
    .option('offset', { type: 'number', default: 0, describe: 'How many to skip' })
    .option('all', { type: 'boolean', describe: 'Show all, however many' });
}

/** Writes a part of a list, and how to go on where there is more. */
function formatPage(
  rows: readonly Readonly<Record<string, Cell>>[],
  { total, next }: { readonly total: number; readonly next: number | null },
): Shown {
  const table = formatTable(rows);
  if (next === null) return table;
  return [table, `${next} of ${total}; continue with --offset ${next}, or show them all with --all`];
}
