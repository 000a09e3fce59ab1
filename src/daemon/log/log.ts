import { pino, type Logger } from 'pino';
import { allowedFields } from './fields.ts';

export type LogSettings = { level: string; format: 'json' | 'pretty' };

/** The last time that was formatted, in epoch ms: many lines have the same time. */
let written = { at: 0, member: '' };

/** The time of a line, as pino's `isoTime` writes it. */
function timeMember(): string {
  const at = Date.now();
  if (written.at !== at) written = { at, member: `,"time":"${new Date(at).toISOString()}"` };
  return written.member;
}

/** How many bytes are kept while standard output accepts no writes. Further lines are lost. */
const keptBytes = 4 * 1024 * 1024;

/** Standard output. Errors, for instance of a full disk, must not end the process. */
function openOutput(): LineSink {
  const output = pino.destination({ dest: 1, sync: true, maxLength: keptBytes });
  output.on('error', () => undefined);
  return output;
}

/** Creates the log: JSON lines on standard output, or readable lines for a terminal. */
export async function makeLog({ level, format }: LogSettings): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: timeMember,
    formatters: { log: allowedFields, level: (name: string) => ({ level: name }) },
    // `allowedFields` describes errors: pino's serializer must not do so again.
    serializers: { err: (described: unknown) => described },
  };
  const output = openOutput();
  if (format === 'json') return pino(options, new BufferedLines(output));
  // In this thread: the transports of pino hang in bundles.
  const { prettyFactory } = await import('pino-pretty');
  const prettify = prettyFactory({ colorize: process.stdout.isTTY });
  return pino(options, { write: (line: string) => output.write(prettify(line)) });
}

/** The destination of lines. `write` returns after the line is written. */
export type LineSink = { write(lines: string): unknown };

/** How long lines are buffered, in ms. A killed process loses the lines of this time. */
const bufferedMs = 5;

/** Buffers lines for a moment and writes them with one system call. The exit of the process writes them too. */
export class BufferedLines {
  readonly #sink: LineSink;
  #lines = '';

  constructor(sink: LineSink) {
    this.#sink = sink;
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    if (this.#lines === '') setTimeout(() => this.flushSync(), bufferedMs).unref();
    this.#lines += line;
  }

  /** Named as pino's `flush` calls it. */
  flush(): void {
    this.flushSync();
  }

  /** Named as pino calls it, before a process ends with a fatal line. */
  flushSync(): void {
    if (this.#lines === '') return;
    const lines = this.#lines;
    this.#lines = '';
    this.#sink.write(lines);
  }
}
