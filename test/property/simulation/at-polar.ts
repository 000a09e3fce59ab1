import { activatedKey } from '../../../src/domain/agent/activated-key.ts';
import { store } from '../../../src/stores/polar/store.ts';
import { PolarClient } from '../../../src/stores/polar/upstream.ts';
import type { SimulatedStore } from './at-store.ts';
import type { Reply } from './ledger.ts';

const notFound = (detail: string): Reply => ({ status: 404, body: { error: 'ResourceNotFound', detail } });

type Sent = { key: string; organization_id: string; activation_id?: string; increment_usage?: number };

export const polar: SimulatedStore = {
  connect: (...parts) => new PolarClient(...parts),
  specified({ headers, body, ...request }) {
    const name = /^\/v1\/customer-portal\/license-keys\/(validate|deactivate)$/.exec(request.path)?.[1];
    if (name === undefined) return null;
    const sent = JSON.parse(typeof body === 'string' ? body : '') as Sent;
    const { key, activation_id: activation, increment_usage: amount } = sent;
    const licenseKey = activation === undefined ? key : activatedKey(key, activation);
    const parameters = new URLSearchParams({ license_key: licenseKey });
    const known = {
      ...(headers as Record<string, string>),
      'product-secret-key': sent.organization_id,
    };
    if (name === 'validate' && amount === undefined) {
      const path = `/api/v2/license/verify?${parameters.toString()}`;
      return { ...request, method: 'GET', path, headers: known };
    }
    if (amount !== undefined) parameters.set('amount', String(amount));
    const path = `/api/v2/license/${name === 'validate' ? 'usage' : 'disable'}`;
    return { ...request, method: 'PUT', path, headers: known, body: parameters.toString() };
  },
  unknown: notFound('Not found'),
  disabled: notFound('License key is no longer active.'),
  show(license, path) {
    if (path.endsWith('/disable')) return { status: 204, body: null };
    const { license_key: key, activation_id: id, buyer_email: email, date } = license;
    const activation = id === null ? null : { id, label: 'laptop', meta: {} };
    const shown = { key, status: 'granted', usage: license['uses'], benefit_id: license['product_link'] };
    return { status: 200, body: { ...shown, customer: { email }, created_at: date, activation } };
  },
  hasActivations: true,
  countsSeveral: true,
  ...(store.takes !== undefined && { takes: store.takes }),
};
