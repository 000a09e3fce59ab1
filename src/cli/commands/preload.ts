import { maxPreloadKeys } from '../../domain/agent/preload.ts';
import { counted } from '../../domain/text.ts';
import { CsvUnreadable, readCsv, separatorFault } from '../../wire/csv.ts';
import { queuedObject, storeKeysObject } from '../../wire/license.ts';
import { request } from '../client/request.ts';
import {
  CommandError,
  defineCommand,
  type GlobalOptions,
  positionalGroup,
  textOption,
  UsageError,
} from '../command.ts';
import { withCsvFile } from '../csv-file.ts';
import { hintFor, quoteForShell } from '../hint.ts';
import type { Output } from '../output.ts';

const keysPerRequest = 5000;
/** Of a store, which lists slowly: fewer are lost by an interruption. */
const keysOfStore = 1000;
const column = 'license_key';

export const command = defineCommand({
  command: 'preload [file]',
  describe: 'Fetch license keys in advance, to answer for them offline',
  builder: {
    file: {
      ...textOption(
        'License keys, one per line, or CSV with a column license_key; - is standard input',
        'file',
      ),
      group: positionalGroup,
    },
    'from-store': {
      type: 'boolean',
      describe: 'The keys that the store lists with your access token, instead of a file',
    },
    product: textOption('Product key of all of them; default: every product is asked', 'product'),
    after: textOption('Where --from-store goes on, as an interrupted one has printed'),
  },
  examples: [
    ['latchkey preload keys.txt', 'so that these keys are answered offline'],
    ['latchkey preload --from-store', 'the license keys of all sales at a store such as Gumroad'],
  ],
  handler: async (args, output) => {
    const { file, fromStore = false } = args;
    if (fromStore === (file !== undefined))
      throw new UsageError('name a file of license keys, or give --from-store');
    if (args.after !== undefined && !fromStore) throw new UsageError('--after is for --from-store');
    const count = file === undefined ? await sendFromStore(args, output) : await sendFile(file, args);
    const what = counted(count, 'license key is', 'license keys are');
    return await output.result(
      { queued: count },
      `${what} queued. To see progress: ${hintFor(args)('status')}`,
    );
  },
});

type Options = GlobalOptions & { readonly product?: string | undefined; readonly after?: string | undefined };

async function sendFile(file: string, args: Options): Promise<number> {
  return await withCsvFile(file, async (source) => {
    let count = 0;
    for await (const keys of batches(licenseKeys(source.bytes))) {
      count += await send(keys, args);
      source.advance(keys.length);
    }
    return count;
  });
}

/** Reads the list of the store page by page, and queues its license keys. Says how to go on from where it stopped. */
async function sendFromStore(args: Options, output: Output): Promise<number> {
  const { product: product_key } = args;
  // `next`: the page to read; `rest`: the first page whose license keys are not queued.
  let [next, rest] = [args.after, args.after];
  let batch: { product: string; keys: string[] } = { product: '', keys: [] };
  let [queued, listed] = [0, 0];
  const flush = async (): Promise<void> => {
    if (batch.keys.length > 0) queued += await send(batch.keys, { ...args, product: batch.product });
    batch.keys = [];
    rest = next;
  };
  const report = (): string => {
    const only = product_key === undefined ? [] : ['--product', quoteForShell(product_key)];
    const place = rest === undefined ? [] : ['--after', rest];
    const words = ['preload --from-store', ...only, ...place].join(' ');
    return `${counted(queued, 'license key is', 'license keys are')} queued; for the rest: ${hintFor(args)(words)}`;
  };
  try {
    while (listed < maxPreloadKeys) {
      const call = { path: '/admin/v1/store/license-keys', query: { product_key, after: next } };
      const { data: page } = await request(args, call, storeKeysObject);
      if (page.product_key !== batch.product) await flush();
      batch = { product: page.product_key, keys: [...batch.keys, ...page.license_keys] };
      // A page without license keys counts, too, so that every list ends.
      listed += Math.max(1, page.license_keys.length);
      const isLast = page.next === null;
      next = page.next ?? undefined;
      if (isLast || batch.keys.length >= keysOfStore) await flush();
      if (isLast) return queued;
      if (batch.keys.length === 0) output.printError([report()]);
    }
    throw new CommandError([`latchkey: one list has at most ${maxPreloadKeys} license keys`]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    await flush().catch(() => undefined);
    throw new CommandError(
      queued === 0 ? error.lines : [...error.lines, report()],
      error.code,
      error.refusal,
    );
  }
}

/** Reads the column `license_key`, or the only column of a file without a header. */
async function* licenseKeys(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const first: string[] = [];
  const toColumns = (header: readonly string[]): readonly string[] => {
    if (header.includes(column)) return header;
    if (header.length > 1) throw new CsvUnreadable(`The header does not name ${column}.`);
    const fault = header[0]?.includes(column) === true ? separatorFault(header) : null;
    if (fault !== null) throw fault;
    first.push(...header);
    return [column];
  };
  for await (const rows of readCsv(bytes, toColumns)) {
    yield* first.splice(0);
    for (const row of rows) {
      const key = 'cells' in row ? row.cells[column] : undefined;
      if (key === undefined) throw new CsvUnreadable(`Line ${row.line} has no license key.`);
      yield key;
    }
  }
  yield* first;
}

async function* batches(keys: AsyncIterable<string>): AsyncGenerator<readonly string[]> {
  let batch: string[] = [];
  for await (const key of keys) {
    batch.push(key);
    if (batch.length < keysPerRequest) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function send(
  keys: readonly string[],
  args: GlobalOptions & { readonly product?: string | undefined },
): Promise<number> {
  const json = { license_keys: keys, product_key: args.product };
  const call = { method: 'POST', path: '/admin/v1/preload', json } as const;
  return (await request(args, call, queuedObject)).data.queued;
}
