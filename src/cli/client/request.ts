import { z } from 'zod';
import {
  type Args,
  type Builder,
  type Command,
  CommandError,
  defineCommand,
  type GlobalOptions,
} from '../command.ts';
import { maxFound } from '../../domain/search.ts';
import { exitCode } from '../exit-code.ts';
import { type Shown, type Cell, formatTable } from '../format.ts';
import { hintFor } from '../hint.ts';
import type { Hint } from '../../domain/finding.ts';
import type { Output } from '../output.ts';
import type { DaemonResponse, Call, Values } from './call.ts';
import { callDaemon } from './daemon.ts';
import { otherVersion } from './endpoint.ts';
import { problemObject, type seatHolder } from '../../wire/response.ts';
import { maxOffset } from '../../domain/page.ts';

/** How the `data` of a response is read and shown. */
export interface View<Data> {
  readonly schema: z.ZodType<Data>;
  /** `hint` writes suggested commands. */
  readonly show: (data: Data, answer: DaemonResponse, hint: Hint) => Shown;
  /** The daemon's time in epoch ms. Default: the `Date` of the response. */
  readonly now?: (data: Data) => number;
  readonly exitCode?: (data: Data, answer: DaemonResponse) => number;
}

/** Declares a command that sends one request to the running daemon and shows the response. */
export function defineRequest<const Declared extends Builder, Data>(
  command: Omit<Command, 'builder' | 'handler'> & {
    readonly builder: Declared;
    readonly request: (args: Args<Declared>) => Call;
    readonly view: View<Data>;
  },
): Command {
  const { request: toCall, view, ...rest } = command;
  return defineCommand({
    ...rest,
    handler: (args, output) => requestAndShow(args, output, toCall(args), view),
  });
}

/** Sends a request with the admin token, shows the response, and returns the exit code. */
export async function requestAndShow<Data>(
  options: GlobalOptions,
  output: Output,
  call: Call,
  view: View<Data>,
): Promise<number> {
  return await show(options, output, await request(options, call, view.schema), view);
}

/** The `data` of a response, as the schema reads it and as it arrived. */
export interface Result<Data> {
  readonly data: Data;
  readonly raw: unknown;
  readonly answer: DaemonResponse;
}

/** Sends a request with the admin token. Throws a `CommandError`. */
export async function request<Data>(
  options: GlobalOptions,
  call: Call,
  schema: z.ZodType<Data>,
): Promise<Result<Data>> {
  const called = await callDaemon(options, call, true);
  if (!called.ok) throw new CommandError(called.lines, called.code);
  if (called.answer.status >= 300) throw toError(called.answer);
  return parse(called.answer, schema, call);
}

/** Sends a request for additional data. Null: the request failed. */
export async function dataOrNull<Data>(
  options: GlobalOptions,
  call: Call,
  schema: z.ZodType<Data>,
): Promise<Data | null> {
  try {
    return (await request(options, call, schema)).data;
  } catch (error) {
    if (error instanceof CommandError) return null;
    throw error;
  }
}

export async function showResponse<Data>(
  options: GlobalOptions,
  output: Output,
  answer: DaemonResponse,
  view: View<Data>,
): Promise<number> {
  return await show(options, output, parse(answer, view.schema, {}), view);
}

function parse<Data>(
  answer: DaemonResponse,
  schema: z.ZodType<Data>,
  { method = 'GET' }: Pick<Call, 'method'>,
): Result<Data> {
  const { body } = answer;
  const raw = typeof body === 'object' && body !== null && 'data' in body ? body.data : body;
  const read = schema.safeParse(raw);
  if (read.success) return { data: read.data, raw, answer };
  throw new CommandError([
    `latchkey: cannot read the daemon's reply: ${otherVersion}`,
    ...(method === 'GET' ? [] : ['The change was made; only the reply could not be read.']),
  ]);
}

async function show<Data>(
  options: GlobalOptions,
  output: Output,
  { data, raw, answer }: Result<Data>,
  view: View<Data>,
): Promise<number> {
  const now = view.now?.(data) ?? answeredAt(answer);
  const done = await output.result(raw, view.show(data, answer, hintFor(options)), now);
  return view.exitCode?.(data, answer) ?? done;
}

/** When the daemon responded, by its own clock, in epoch ms. */
export function answeredAt({ headers }: DaemonResponse): number {
  const date = Date.parse(headers.date ?? '');
  return Number.isNaN(date) ? Date.now() : date;
}

/** The body of an error (src/http/README.md, Problems). */
const problem = problemObject
  .pick({ title: true, detail: true, errors: true, holders: true, frees_at: true })
  .partial({ detail: true })
  // A daemon of another version may have other codes.
  .extend({ code: z.string() });

function toError({ status, body }: DaemonResponse): CommandError {
  const read = problem.safeParse(body);
  if (!read.success)
    return new CommandError([`latchkey: got HTTP ${status} from something that is not Latchkey`]);
  const { title, detail, code, errors = [], holders = [], frees_at: free } = read.data;
  return new CommandError(
    [
      `latchkey: ${title} (${code})`,
      ...(detail === undefined ? [] : [detail]),
      ...errors.map(formatError),
      ...holders.map(formatHolder),
      ...(free === undefined ? [] : [`The seat is free from ${free}`]),
    ],
    code === 'configuration_invalid' ? exitCode.configuration : exitCode.failed,
    { code, detail: detail ?? title, body },
  );
}

/** A device that has a seat of the license. */
function formatHolder(holder: z.infer<typeof seatHolder>): string {
  const { activation_id: id, device_name: name, last_seen: seen, frees_at: free } = holder;
  return `  ${id}  ${name ?? 'a device without a name'}, last seen ${seen}, its seat is free from ${free}`;
}

/** Puts the name of the parameter before the sentence, unless the sentence starts with it. */
function formatError({ parameter, detail }: { parameter: string; detail: string }): string {
  return detail.startsWith(`${parameter} `) || detail.startsWith(`${parameter}: `)
    ? `  ${detail}`
    : `  ${parameter}: ${detail}`;
}

/** The path of one thing below the path of its list. */
export function pathOf(list: string, id: string): string {
  return `${list}/${encodeURIComponent(id)}`;
}

const pageOptions = {
  limit: { type: 'number', default: 100, describe: 'How many to show, 1 to 100' },
  offset: { type: 'number', default: 0, describe: 'How many to skip' },
  all: { type: 'boolean', describe: 'Show all' },
} as const satisfies Builder;

/** A list of the daemon, and how it is shown as a table. */
interface List<Item> {
  readonly path: string;
  /** The member of the response's `data` that has the items. */
  readonly member: string;
  readonly item: z.ZodType<Item>;
  readonly row: (item: Item) => Readonly<Record<string, Cell>>;
  /** What to warn of after a response; null: nothing. */
  readonly warning?: (answer: DaemonResponse) => string | null;
}

type ListArgs<Declared> = Args<Declared & typeof pageOptions>;

/** Declares a command that shows a page of a list, or the whole list. */
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
  const { path, member, item, row, warning } = list;
  const schema = z.object({ [member]: z.array(item) });
  return defineCommand({
    ...rest,
    builder: { ...pageOptions, ...builder },
    handler: async (parsed, output) => {
      const args = parsed as unknown as ListArgs<Declared>;
      const { limit, offset, all } = parsed;
      const where = `${path}${within(args)}`;
      const filter = query(args);
      const { items, raw, total, hasMore, answer } = await readPages({ limit, offset, all }, member, (page) =>
        request(parsed, { path: where, query: { ...filter, ...page } }, schema),
      );
      const warned = warning?.(answer) ?? null;
      if (warned !== null) output.printError([`latchkey: ${warned}`]);
      const end = offset + items.length;
      const next = items.length > 0 && hasMore(end) ? end : null;
      const shown = formatPage(items.map(row), { total, next });
      return await output.result({ [member]: raw, total, next }, shown, answeredAt(answer));
    },
  });
}

export interface Pages<Item> {
  readonly items: Item[];
  readonly raw: unknown[];
  /** Null: a search has found more than it counts. */
  readonly total: number | null;
  /** Whether there are rows after so many. */
  readonly hasMore: (end: number) => boolean;
  /** The last response. */
  readonly answer: DaemonResponse;
}

/**
 * Reads one page of a list, or all pages with `--all`. If the offset is larger than the daemon accepts, this reads the
 * items in between and drops them.
 */
export async function readPages<Item>(
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
    const { data, raw: unread, answer } = await read(page);
    const pageItems = data[member] ?? [];
    items.push(...pageItems.slice(skip));
    raw.push(...((unread as Record<string, unknown[]>)[member] ?? []).slice(skip));
    skip = Math.max(0, skip - pageItems.length);
    const cursor = cursorOf(answer.headers['link']);
    if (cursor === null || items.length >= wanted) {
      const counted = answer.headers['x-total-count'];
      const isCut = cursor !== null || items.length > wanted;
      const total = counted === undefined && isCut ? null : Number(counted ?? items.length);
      const hasMore = (end: number): boolean => (total === null ? isCut : end < total);
      return { items: items.slice(0, wanted), raw: raw.slice(0, wanted), total, hasMore, answer };
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

function formatPage(
  rows: readonly Readonly<Record<string, Cell>>[],
  { total, next }: { readonly total: number | null; readonly next: number | null },
): Shown {
  const table = formatTable(rows);
  if (next === null) return table;
  return [
    table,
    `${next} of ${total ?? `more than ${maxFound}`}; continue with --offset ${next}, or show them all with --all`,
  ];
}
