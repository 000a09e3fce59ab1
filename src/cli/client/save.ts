import { type FileHandle, open, rm } from 'node:fs/promises';
import { z } from 'zod';
import { formatReason } from '../../config/fault/fault.ts';
import { type GlobalOptions, UsageError } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { ask } from './ask.ts';
import { type Call, type Sink, SinkError } from './call.ts';

const saved = z.object({ file: z.string(), bytes: z.int() });

/**
 * Saves the body of an answer into a new file (0600) and gives the exit code; never overwrites one, and removes an
 * incomplete one. `-` is no name of one, and refused: whoever means standard output would look for it there.
 */
export async function saveAnswer(
  file: string,
  request: Omit<Call, 'sink'>,
  args: GlobalOptions,
  output: Output,
): Promise<number> {
  if (file === '-') throw new UsageError('The name of a new file is needed: - is none');
  let handle: FileHandle;
  try {
    handle = await open(file, 'wx', 0o600);
  } catch (error) {
    output.complain([`latchkey: cannot make ${file}: ${formatReason(error)}`]);
    return exitCode.failed;
  }
  let code: number = exitCode.failed;
  try {
    await using _ = handle;
    using ending = untilSignal();
    const sink = fileSink(file, handle, ending.signal);
    const view = { schema: saved, show: ({ bytes }: { bytes: number }) => `${file}: ${bytes} bytes` };
    code = await ask(args, output, { ...request, sink }, view);
  } catch (error) {
    if (!(error instanceof SinkError)) throw error;
    output.complain([`latchkey: cannot write ${file}: ${error.message}`]);
  } finally {
    if (code !== exitCode.done) await rm(file, { force: true });
  }
  return code;
}
function fileSink(file: string, handle: FileHandle, signal: AbortSignal): Sink {
  return {
    signal,
    async fill(body) {
      for await (const chunk of body) await kept(handle.writeFile(chunk));
      await kept(handle.sync());
      const { size } = await handle.stat();
      return { file, bytes: size };
    },
  };
}

async function kept(write: Promise<void>): Promise<void> {
  try {
    await write;
  } catch (error) {
    throw new SinkError(formatReason(error), { cause: error });
  }
}

/** Until disposed of, SIGINT and SIGTERM abort the copy instead of ending the process before it cleaned up. */
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
