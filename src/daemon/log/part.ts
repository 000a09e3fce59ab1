import type { Log } from '../../service/ports.ts';

/** The log of one part of the process: every line says which. */
export function logOf(log: Log, part: 'daemon' | 'http' | 'store' | 'sync'): Log {
  return {
    debug: (fields, message) => log.debug({ ...fields, part }, message),
    info: (fields, message) => log.info({ ...fields, part }, message),
    warn: (fields, message) => log.warn({ ...fields, part }, message),
    error: (fields, message) => log.error({ ...fields, part }, message),
  };
}
