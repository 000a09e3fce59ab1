import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import { allowedFields } from './fields.ts';
import { GatheredLines } from './gathered-lines.ts';

export type LogSettings = { level: string; format: 'json' | 'pretty' };

/** The last instant that was written, in epoch ms, and how: many lines are of the same. */
let written = { at: 0, member: '' };

/** The member of a line that tells when it was made, as pino's own `isoTime` writes it. */
function timeMember(): string {
  const at = Date.now();
  if (written.at !== at) written = { at, member: `,"time":"${new Date(at).toISOString()}"` };
  return written.member;
}

/** Makes the log: JSON lines on standard output, or readable ones for a terminal. */
export function makeLog({ level, format }: LogSettings): Logger {
  const options = {
    level,
    base: null,
    timestamp: timeMember,
    formatters: { log: allowedFields, level: (name: string) => ({ level: name }) },
    // An error is described by then: pino's own serializer would take the description for one.
    serializers: { err: (described: unknown) => described },
  };
  // In this thread: pino's transports hang in bundles.
  return format === 'pretty'
    ? pino(options, pretty({ sync: true, colorize: process.stdout.isTTY }))
    : pino(options, new GatheredLines(pino.destination({ dest: 1, sync: true })));
}
