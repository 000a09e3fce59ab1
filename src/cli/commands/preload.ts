import { counted } from '../../domain/text.ts';
import { CsvUnreadable, readCsv, separatorFault } from '../../wire/csv.ts';
import { request } from '../client/request.ts';
import { defineCommand, type GlobalOptions, positional, textOption } from '../command.ts';
import { withCsvFile } from '../csv-file.ts';
import { hintFor } from '../hint.ts';
import { queuedObject } from '../../wire/license.ts';

const keysPerRequest = 5000;
const column = 'license_key';

export const command = defineCommand({
  command: 'preload <file>',
  describe: 'Fetch license keys in advance, to answer for them offline',
  builder: {
    file: positional(
      'License keys, one per line, or CSV with a column license_key; - is standard input',
      'file',
    ),
    product: textOption('Product key of all of them; default: every product is asked', 'product'),
  },
  examples: [['latchkey preload keys.txt', 'so that these keys are answered offline']],
  handler: async (args, output) =>
    await withCsvFile(args.file, async (source) => {
      let count = 0;
      for await (const keys of batches(licenseKeys(source.bytes))) {
        count += await send(keys, args);
        source.advance(keys.length);
      }
      const what = counted(count, 'license key is', 'license keys are');
      return await output.result(
        { queued: count },
        `${what} queued. To see progress: ${hintFor(args)('status')}`,
      );
    }),
});

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
