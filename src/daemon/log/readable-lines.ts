import { prettyFactory } from 'pino-pretty';
import type { LineSink } from './log.ts';

/** Writes each line as people read it, with colours on a terminal. */
export function readableLines(sink: LineSink): LineSink {
  const prettify = prettyFactory({ colorize: process.stdout.isTTY });
  return { write: (line) => sink.write(prettify(line)) };
}
