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
