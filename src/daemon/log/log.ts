import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import { allowedFields } from './fields.ts';
import { GatheredLines } from './gathered-lines.ts';

export type LogSettings = { level: string; format: 'json' | 'pretty' };

/** Makes the log: JSON lines on standard output, or readable ones for a terminal. */
export function makeLog({ level, format }: LogSettings): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { log: allowedFields, level: (name: string) => ({ level: name }) },
    // An error is described by then: pino's own serializer would take the description for one.
    serializers: { err: (described: unknown) => described },
  };
  // In this thread: pino's transports hang in bundles.
  return format === 'pretty'
    ? pino(options, pretty({ sync: true, colorize: process.stdout.isTTY }))
    : pino(options, new GatheredLines(pino.destination({ dest: 1, sync: true })));
}
