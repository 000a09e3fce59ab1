import type { KeyRange, LoadRequest } from './load/job.ts';

/** The product of every store that is measured, and its secret. */
export const productKey = 'bench';
export const secret = 'secret-of-the-measured-product';

/** One license key, asked for again and again. */
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
