import { z } from 'zod';
import { maxOffset } from '../../domain/page.ts';
import { type Args, type Builder, type Command, defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { type Cell, formatTable, type Shown } from '../format.ts';
import type { DaemonResponse, Values } from './call.ts';
import { answeredAt, request, type Result } from './request.ts';

/** The options of every list. */
const pageOptions = {
  limit: { type: 'number', default: 100, describe: 'How many to show, 1 to 100' },
  offset: { type: 'number', default: 0, describe: 'How many to skip' },
  all: { type: 'boolean', describe: 'Show all' },
} as const satisfies Builder;

/** A list of the daemon, and how it is shown as a table. */
export interface List<Item> {
  readonly path: string;
  /** The member of the response's `data` that has the items. */
  readonly member: string;
  readonly item: z.ZodType<Item>;
  /** The cells of an item by the names of their columns. */
  readonly row: (item: Item) => Readonly<Record<string, Cell>>;
}

type ListArgs<Declared> = Args<Declared & typeof pageOptions>;

/** Declares a command that shows a page of a list, or all of it. */
export function defineList<const Declared extends Builder, Item>(
  command: Omit<Command, 'builder' | 'handler'> & {
    readonly builder: Declared;
    readonly list: List<Item>;
    /** The query that the command's own options become. */
    readonly query?: (args: ListArgs<Declared>) => Values;
    /** What follows the path of the list, if it belongs to one thing. */
    readonly within?: (args: ListArgs<Declared>) => string;
  },
): Command {
  const { list, query = () => ({}), within = () => '', builder, ...rest } = command;
  const { path, member, item, row } = list;
  const schema = z.object({ [member]: z.array(item) });
  return defineCommand({
    ...rest,
    builder: { ...pageOptions, ...builder },
    handler: async (given, output) => {
      const args = given as unknown as ListArgs<Declared>;
      const { limit, offset, all } = given;
      const where = `${path}${within(args)}`;
      const filter = query(args);
      const read = await readPages({ limit, offset, all }, member, async (page) =>
        request(given, { path: where, query: { ...filter, ...page } }, schema),
      );
      if (!read.ok) return read.report(output);
      const { items, raw, total, answer } = read;
      const end = offset + items.length;
      const next = items.length > 0 && end < total ? end : null;
      if (given.json) output.printJson({ [member]: raw, total, next });
      else await output.show(formatPage(items.map(row), { total, next }), answeredAt(answer));
      return exitCode.done;
    },
  });
}

type Pages<Item> =
  | {
      readonly ok: true;
      readonly items: Item[];
      readonly raw: unknown[];
      readonly total: number;
      /** The last response. */
      readonly answer: DaemonResponse;
    }
  | (Result<never> & { readonly ok: false });

/**
 * Reads one page of a list, or all pages with `--all`. If the offset is larger than the daemon accepts, this reads the
 * items in between and drops them.
 */
async function readPages<Item>(
  { limit, offset, all }: { limit: number; offset: number; all: boolean | undefined },
  member: string,
  read: (page: Values) => Promise<Result<Record<string, Item[]>>>,
): Promise<Pages<Item>> {
  const first = Math.min(offset, maxOffset);
  let skip = offset - first;
  const wanted = all ? Infinity : limit;
  const items: Item[] = [];
  const raw: unknown[] = [];
  for (let page: Values = { limit: all || skip > 0 ? maxPage : limit, offset: first }; ;) {
    const result = await read(page);
    if (!result.ok) return result;
    const { answer } = result;
    const got = result.data[member] ?? [];
    items.push(...got.slice(skip));
    raw.push(...((result.raw as Record<string, unknown[]>)[member] ?? []).slice(skip));
    skip = Math.max(0, skip - got.length);
    const cursor = cursorOf(answer.headers['link']);
    if (cursor === null || items.length >= wanted) {
      const total = Number(answer.headers['x-total-count'] ?? items.length);
      return { ok: true, items: items.slice(0, wanted), raw: raw.slice(0, wanted), total, answer };
    }
    page = { limit: maxPage, cursor };
  }
}

const maxPage = 100;

/** The cursor of the next page in the header `Link` (RFC 8288), or null. */
function cursorOf(link: unknown): string | null {
  const [, target] = /^<([^>]*)>; rel="next"$/.exec(String(link)) ?? [];
  return target === undefined ? null : new URLSearchParams(target.split('?')[1]).get('cursor');
}

/** Shows a page, and how to continue. */
function formatPage(
  rows: readonly Readonly<Record<string, Cell>>[],
  { total, next }: { readonly total: number; readonly next: number | null },
): Shown {
  const table = formatTable(rows);
  if (next === null) return table;
  return [table, `${next} of ${total}; continue with --offset ${next}, or show them all with --all`];
}
