import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
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

const hashLength = 12;
/** A change is told some times in a row: its key is hashed once. */
const rememberedHashes = 1_000;

/**
 * A log in which `licenseKey` of a line becomes `license`, a short hash under the store's own secret: lines
 * about one key are found by it, and nobody gets from it to the key.
 */
export function hashLicenseKeys(log: Log, secret: string): Log {
  const hashes = new LRUCache<string, string>({
    max: rememberedHashes,
    memoMethod: (licenseKey) =>
      createHmac('sha256', secret).update(licenseKey).digest('hex').slice(0, hashLength),
  });
  const hashed = (fields: Record<string, unknown>): Record<string, unknown> => {
    const { licenseKey } = fields;
    if (typeof licenseKey !== 'string') return fields;
    // Undefined, not left out: V8 copies a whole object faster than all of it but one field.
    return { ...fields, licenseKey: undefined, license: hashes.memo(licenseKey) };
  };
  return {
    debug: (fields, message) => log.debug(hashed(fields), message),
    info: (fields, message) => log.info(hashed(fields), message),
    warn: (fields, message) => log.warn(hashed(fields), message),
    error: (fields, message) => log.error(hashed(fields), message),
  };
}
