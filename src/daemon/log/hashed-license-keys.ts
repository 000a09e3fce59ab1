import { createHmac } from 'node:crypto';
import type { Log } from '../../service/ports.ts';

const hashLength = 12;

/**
 * A log in which `licenseKey` of a line becomes `license`, a short hash under the store's own secret: lines
 * about one key are found by it, and nobody gets from it to the key.
 */
export function hashLicenseKeys(log: Log, secret: string): Log {
  const hashed = (fields: Record<string, unknown>): Record<string, unknown> => {
    const { licenseKey, ...others } = fields;
    if (typeof licenseKey !== 'string') return fields;
    const license = createHmac('sha256', secret).update(licenseKey).digest('hex').slice(0, hashLength);
    return { license, ...others };
  };
  return {
    debug: (fields, message) => log.debug(hashed(fields), message),
    info: (fields, message) => log.info(hashed(fields), message),
    warn: (fields, message) => log.warn(hashed(fields), message),
    error: (fields, message) => log.error(hashed(fields), message),
  };
}
