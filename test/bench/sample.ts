import { hash } from 'node:crypto';
import { licenseKeyFrom } from '../../src/domain/license.ts';
import type { KeyRange, LoadRequest } from './load/job.ts';

/** The product of every measured store, and its secret. */
export const productKey = 'bench';
export const secret = 'secret-of-the-measured-product';

/** One license key for all requests. */
export const oneKey: KeyRange = { first: 0, count: 1 };

export const verify: LoadRequest = {
  method: 'GET',
  path: '/api/v2/license/verify?license_key={key}',
  headers: { 'product-secret-key': secret },
  body: '',
};

export const use: LoadRequest = {
  method: 'PUT',
  path: '/api/v2/license/usage',
  headers: { 'product-secret-key': secret, 'content-type': 'application/x-www-form-urlencoded' },
  body: 'license_key={key}',
};

/** The license key of a number: the same in every process, and distributed like random keys. */
export function licenseKeyOf(number: number): string {
  return licenseKeyFrom(hash('sha256', `license ${number}`, 'buffer'));
}
