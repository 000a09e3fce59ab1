import { type FileHandle, open, rm } from 'node:fs/promises';
import { z } from 'zod';
import { formatReason } from '../../config/errors.ts';
import { restrictToOwner } from '../../config/file/windows-rights.ts';
import { CommandError, type GlobalOptions, UsageError } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { type Call, type Sink, SinkError } from './call.ts';
import { requestAndShow } from './request.ts';

const saved = z.object({ file: z.string(), bytes: z.int() });

/**
 * Saves the body of a response into a new file (0600) and returns the exit code. Never overwrites a file, and removes an
 * incomplete one. Rejects `-`, which users would take for standard output.
 */
export async function saveResponse(
  file: string,
  call: Omit<Call, 'sink'>,
  args: GlobalOptions,
  output: Output,
): Promise<number> {
  const handle = await createFile(file);
  let code: number = exitCode.failed;
  try {
    await using _ = handle;
    using ending = untilSignal();
    const sink = fileSink(file, handle, ending.signal);
    const view = { schema: saved, show: ({ bytes }: { bytes: number }) => `${file}: ${bytes} bytes` };
    code = await requestAndShow(args, output, { ...call, sink }, view);
  } catch (error) {
    if (!(error instanceof SinkError)) throw error;
    throw new CommandError([`latchkey: cannot write ${file}: ${error.message}`]);
  } finally {
    if (code !== exitCode.done) await rm(file, { force: true });
  }
  return code;
}

/** Writes a text into a new file (0600); never overwrites one, and removes an incomplete one. */
export async function writeNewFile(file: string, text: string): Promise<void> {
  const handle = await createFile(file);
  try {
    await using _ = handle;
    await handle.writeFile(text);
    await handle.sync();
  } catch (error) {
    await rm(file, { force: true });
    throw new CommandError([`latchkey: cannot write ${file}: ${formatReason(error)}`]);
  }
}

/** Creates a new file (0600); never overwrites one. */
async function createFile(file: string): Promise<FileHandle> {
  if (file === '-') throw new UsageError('Give a file name; - is not allowed here');
  try {
    const handle = await open(file, 'wx', 0o600);
    if (process.platform === 'win32') restrictToOwner(file, 'file');
    return handle;
  } catch (error) {
    throw new CommandError([`latchkey: cannot create ${file}: ${formatReason(error)}`]);
  }
}

function fileSink(file: string, handle: FileHandle, signal: AbortSignal): Sink {
  return {
    signal,
    async fill(body) {
      for await (const chunk of body) await write(handle.writeFile(chunk));
      await write(handle.sync());
      const { size } = await handle.stat();
      return { file, bytes: size };
    },
  };
}

async function write(writing: Promise<void>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    throw new SinkError(formatReason(error), { cause: error });
  }
}

/** Until it is disposed, SIGINT and SIGTERM abort the copy instead of ending the process, so that the file is removed. */
function untilSignal(): Disposable & { readonly signal: AbortSignal } {
  const ending = new AbortController();
  const end = (name: NodeJS.Signals): void => ending.abort(new Error(`ended by ${name}`));
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.once(name, end);
  return {
    signal: ending.signal,
    [Symbol.dispose]: () => {
      for (const name of names) process.off(name, end);
    },
  };
}
