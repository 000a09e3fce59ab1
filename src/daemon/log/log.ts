import { pino, type Logger } from 'pino';
import { allowedFields } from './fields.ts';

export type LogSettings = { level: string; format: 'json' | 'pretty' };

/** The last instant that was written, in epoch ms, and how: many lines are of the same. */
let written = { at: 0, member: '' };

/** The member of a line that tells when it was made, as pino's own `isoTime` writes it. */
function timeMember(): string {
  const at = Date.now();
  if (written.at !== at) written = { at, member: `,"time":"${new Date(at).toISOString()}"` };
  return written.member;
}

/** How much of what cannot be written is kept until it can be, in bytes; what comes then is lost. */
const keptBytes = 4 * 1024 * 1024;

/** Standard output. That nothing can be written there, as on a full disk, must not end the process. */
function openOutput(): LineSink {
  const output = pino.destination({ dest: 1, sync: true, maxLength: keptBytes });
  output.on('error', () => undefined);
  return output;
}

/** Makes the log: JSON lines on standard output, or readable ones for a terminal. */
export async function makeLog({ level, format }: LogSettings): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: timeMember,
    formatters: { log: allowedFields, level: (name: string) => ({ level: name }) },
    // An error is described by then: pino's own serializer would take the description for one.
    serializers: { err: (described: unknown) => described },
  };
  const output = openOutput();
  if (format === 'json') return pino(options, new GatheredLines(output));
  // In this thread: pino's transports hang in bundles.
  const { readableLines } = await import('./readable-lines.ts');
  return pino(options, readableLines(output));
}

/** Where lines go; written before it returns. */
export type LineSink = { write(lines: string): unknown };

/** For how long lines are gathered, in ms: a process that is killed loses those of no longer. */
const gatheredMs = 5;

/**
 * Gathers lines for a moment and writes them at once: many changes, each with its lines, then cost one system call.
 * What is gathered is written when the process exits, too.
 */
export class GatheredLines {
  readonly #sink: LineSink;
  #lines = '';

  constructor(sink: LineSink) {
    this.#sink = sink;
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    if (this.#lines === '') setTimeout(() => this.flushSync(), gatheredMs).unref();
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
