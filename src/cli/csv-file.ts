import { open } from 'node:fs/promises';
import { formatReason } from '../config/errors.ts';
import { CsvUnreadable } from '../wire/csv.ts';
import { CommandError } from './command.ts';
import { startProgress } from './screen.ts';
import { counted } from '../domain/text.ts';

/** The bytes of a file, and its progress bar on a terminal. */
interface CsvFile extends AsyncDisposable {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly advance: (rows: number) => void;
}

/** Opens a CSV file for some work. Throws a `CommandError` if the file cannot be read. `-` is standard input. */
export async function withCsvFile<Value>(
  file: string,
  work: (csv: CsvFile) => Promise<Value>,
): Promise<Value> {
  try {
    await using csv = await openCsvFile(file);
    return await work(csv);
  } catch (error) {
    if (!(error instanceof CsvUnreadable) && !isSystemError(error)) throw error;
    const reason = error instanceof CsvUnreadable ? error.message : formatReason(error);
    throw new CommandError([`latchkey: cannot read ${file}: ${reason}`]);
  }
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'errno' in error;
}

async function openCsvFile(file: string): Promise<CsvFile> {
  if (file === '-') {
    // The length is unknown, so there is no progress bar.
    return { bytes: process.stdin, advance: () => undefined, [Symbol.asyncDispose]: async () => undefined };
  }
  const handle = await open(file);
  const { size } = await handle.stat();
  const stream = handle.createReadStream();
  const bar = await startProgress(size);
  let rows = 0;
  return {
    bytes: stream,
    advance: (more) => {
      rows += more;
      bar?.update(stream.bytesRead, counted(rows, 'row'));
    },
    [Symbol.asyncDispose]: async () => {
      bar?.stop();
      stream.destroy();
      await handle.close();
    },
  };
}
