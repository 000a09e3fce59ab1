/** Where gathered lines go; written before it returns. */
export type LineSink = { write(lines: string): unknown };

/**
 * Gathers the lines of one turn of the event loop and writes them at once: a batch of changes, each with its
 * lines, then costs one system call. What is gathered is written when the process exits, too.
 */
export class GatheredLines {
  readonly #sink: LineSink;
  #lines = '';

  constructor(sink: LineSink) {
    this.#sink = sink;
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    if (this.#lines === '') setImmediate(() => this.flushSync());
    this.#lines += line;
  }

  /** Named as pino calls it, before a process ends with a fatal line. */
  flushSync(): void {
    if (this.#lines === '') return;
    const lines = this.#lines;
    this.#lines = '';
    this.#sink.write(lines);
  }
}
