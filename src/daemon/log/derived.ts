import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Log } from '../../service/ports.ts';

/** The log of one part of the process. Every line names the part. */
export function logOf(log: Log, part: 'daemon' | 'http' | 'store' | 'sync'): Log {
  return {
    debug: (fields, message) => log.debug({ ...fields, part }, message),
    info: (fields, message) => log.info({ ...fields, part }, message),
    warn: (fields, message) => log.warn({ ...fields, part }, message),
    error: (fields, message) => log.error({ ...fields, part }, message),
  };
}

const hashLength = 12;
/** Several lines in a row are about the same key. */
const maxHashes = 1_000;

/**
 * A log that replaces `licenseKey` by `license`, a short hash with a secret of the store: the lines of one key can be
 * found, and the hash does not reveal the key.
 */
export function hashLicenseKeys(log: Log, secret: string): Log {
  const hashes = new LRUCache<string, string>({
    max: maxHashes,
    memoMethod: (licenseKey) =>
      createHmac('sha256', secret).update(licenseKey).digest('hex').slice(0, hashLength),
  });
  const hashed = (fields: Record<string, unknown>): Record<string, unknown> => {
    const { licenseKey } = fields;
    if (typeof licenseKey !== 'string') return fields;
    // Undefined instead of omitted: V8 copies a whole object faster.
    return { ...fields, licenseKey: undefined, license: hashes.memo(licenseKey) };
  };
  return {
    debug: (fields, message) => log.debug(hashed(fields), message),
    info: (fields, message) => log.info(hashed(fields), message),
    warn: (fields, message) => log.warn(hashed(fields), message),
    error: (fields, message) => log.error(hashed(fields), message),
  };
}
