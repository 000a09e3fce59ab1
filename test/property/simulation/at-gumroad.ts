import { GumroadClient } from '../../../src/stores/gumroad/upstream.ts';
import type { SimulatedStore } from './at-store.ts';
import type { Reply } from './ledger.ts';

const paths: Readonly<Record<string, string>> = {
  verify: 'usage',
  enable: 'enable',
  disable: 'disable',
  decrement_uses_count: 'decrease',
};

const refused = (message: string): Reply => ({ status: 404, body: { success: false, message } });

export const gumroad: SimulatedStore = {
  connect: (...parts) => new GumroadClient(...parts),
  specified({ headers, body, ...request }) {
    const name = /^\/v2\/licenses\/(\w+)$/.exec(request.path)?.[1];
    if (name === undefined) return null;
    const form = new URLSearchParams(typeof body === 'string' ? body : '');
    const parameters = new URLSearchParams({ license_key: form.get('license_key') ?? '' }).toString();
    const known = {
      ...(headers as Record<string, string>),
      'product-secret-key': form.get('product_id') ?? '',
    };
    if (form.get('increment_uses_count') === 'false')
      return { ...request, method: 'GET', path: `/api/v2/license/verify?${parameters}`, headers: known };
    const path = `/api/v2/license/${paths[name]}`;
    return { ...request, method: 'PUT', path, headers: known, body: parameters };
  },
  unknown: refused('That license does not exist for the provided product.'),
  disabled: refused('This license key has been disabled.'),
  show: (license) => ({
    status: 200,
    body: {
      success: true,
      uses: license['uses'],
      purchase: {
        license_key: license['license_key'],
        email: license['buyer_email'],
        product_permalink: license['product_link'],
        sale_timestamp: license['date'],
        refunded: false,
      },
    },
  }),
};
