import { z } from 'zod';
import { CsvUnreadable, readCsv, separatorFault } from '../../wire/bulk/csv.ts';
import { type Asked, inquire } from '../client/ask.ts';
import { type Command, defineCommand, type GlobalOptions, operand, textOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { hintFor } from '../hint.ts';
import { counted } from '../../domain/text.ts';
import { withSource } from './seller/csv-source.ts';

interface PreloadOptions extends GlobalOptions {
  readonly file: string;
  readonly product?: string | undefined;
}

const keysOfRequest = 5000;
const column = 'license_key';
const queued = z.object({ queued: z.int() });

/** `preload`: queues the license keys of a file; `status` shows how far they are fetched. */
export const preloadCommand: Command = defineCommand<PreloadOptions>(
  (syntax) =>
    syntax
      .positional(
        'file',
        operand('License keys, one per line, or CSV with a column license_key; - is standard input', 'file'),
      )
      .options({
        product: textOption('Product key of all of them; default: every product is asked', 'product'),
      })
      .example('latchkey preload keys.txt', 'so that these keys are answered offline'),
  (args, output) =>
    withSource(args.file, output, async (source) => {
      let count = 0;
      for await (const keys of batches(licenseKeys(source.bytes))) {
        const asked = await send(keys, args);
        if (!asked.ok) return asked.complain(output);
        count += asked.data.queued;
        source.advance(keys.length);
      }
      if (args.json) output.printJson({ queued: count });
      else
        output.print(
          `${counted(count, 'license key is', 'license keys are')} queued. How far they are fetched: ${hintFor(args)('status')}`,
        );
      return exitCode.done;
    }),
);

/** The column `license_key`, or the only column of a file without header. */
async function* licenseKeys(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const first: string[] = [];
  const toColumns = (header: readonly string[]): readonly string[] => {
    if (header.includes(column)) return header;
    if (header.length > 1) throw new CsvUnreadable(`The header does not name ${column}.`);
    const fault = header[0]?.includes(column) === true ? separatorFault(header) : null;
    if (fault !== null) throw new CsvUnreadable(fault);
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
    if (batch.length < keysOfRequest) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function send(keys: readonly string[], args: PreloadOptions): Promise<Asked<{ queued: number }>> {
  const json = { license_keys: keys, product_key: args.product };
  return inquire(args, { method: 'POST', path: '/admin/v1/preload', json }, queued);
}
