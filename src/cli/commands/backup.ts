import { type FileHandle, open, rm } from 'node:fs/promises';
import { z } from 'zod';
import { formatReason } from '../../config/fault.ts';
import { ask } from '../client/ask.ts';
import { type Sink, SinkError } from '../client/call.ts';
import { type Command, defineCommand, type GlobalOptions, operand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';

/** `backup`: never overwrites a file, and removes an incomplete one. */
export const backupCommand: Command = defineCommand(
  (yargs) =>
    yargs
      .positional('file', operand('New file'))
      .example('$0 backup latchkey-2026-02-22.db', 'to be put back by: latchkey restore'),
  async (args, output) => {
    const { file } = args;
    let handle: FileHandle;
    try {
      handle = await open(file, 'wx', 0o600);
    } catch (error) {
      output.complain([`latchkey: cannot make ${file}: ${formatReason(error)}`]);
      return exitCode.failed;
    }
    let code: number = exitCode.failed;
    try {
      code = await copyInto(handle, args, output);
    } finally {
      if (code !== exitCode.done) await rm(file, { force: true });
    }
    return code;
  },
);

const backup = z.object({ file: z.string(), bytes: z.int() });

async function copyInto(
  handle: FileHandle,
  args: GlobalOptions & { readonly file: string },
  output: Output,
): Promise<number> {
  const { file } = args;
  await using _ = handle;
  using ending = untilSignal();
  const sink = fileSink(file, handle, ending.signal);
  try {
    return await ask(
      args,
      output,
      { path: '/admin/v1/backup', sink },
      { schema: backup, show: ({ bytes }) => `${file}: ${bytes} bytes` },
    );
  } catch (error) {
    if (!(error instanceof SinkError)) throw error;
    output.complain([`latchkey: cannot write ${file}: ${error.message}`]);
    return exitCode.failed;
  }
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
