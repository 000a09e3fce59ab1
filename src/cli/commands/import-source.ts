import { open } from 'node:fs/promises';

/** The bytes of a file, and a progress bar of them on a terminal. */
export interface Source extends AsyncDisposable {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Notes that so many more rows are done. */
  readonly advance: (rows: number) => void;
}

/** Opens a file for one reading; `-` is standard input, whose end nobody knows. Rejects with a system error. */
export async function openSource(file: string): Promise<Source> {
  if (file === '-') {
    return { bytes: process.stdin, advance: () => undefined, [Symbol.asyncDispose]: async () => undefined };
  }
  const handle = await open(file);
  const { size } = await handle.stat();
  const stream = handle.createReadStream();
  const bar = process.stderr.isTTY ? await startBar(size) : null;
  let rows = 0;
  return {
    bytes: stream,
    advance: (more) => {
      rows += more;
      bar?.update(stream.bytesRead, { rows });
    },
    [Symbol.asyncDispose]: async () => {
      bar?.stop();
      stream.destroy();
      await handle.close();
    },
  };
}

async function startBar(
  total: number,
): Promise<{ update: (value: number, payload: object) => void; stop: () => void }> {
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({
    format: '{bar} {percentage}% | {rows} rows | {eta_formatted} left',
    clearOnComplete: true,
    hideCursor: true,
    stream: process.stderr,
  });
  bar.start(total, 0, { rows: 0 });
  return bar;
}
