import type { Log } from '../../service/ports.ts';

/** The log of one part of the process: every line says which. */
export function logOf(log: Log, part: 'daemon' | 'http' | 'store' | 'sync'): Log {
  return {
    debug: (fields, message) => log.debug({ part, ...fields }, message),
    info: (fields, message) => log.info({ part, ...fields }, message),
    warn: (fields, message) => log.warn({ part, ...fields }, message),
    error: (fields, message) => log.error({ part, ...fields }, message),
  };
}
