import { PolarStore, type PolarSale } from '../../../src/features/sandbox/stores/polar.ts';
import type { Configuration } from '../harness/agent-harness.ts';
import type { HttpResponse } from '../network/raw-http.ts';
import { startStoreHarness, type StoreHarness } from './store-harness.ts';

export const organizationId = 'fda84e25-7b55-4d67-916d-60ead04ff61f';
export const accessToken = 'polar_oat_of_the_seller';
export const benefitId = '32a8eda4-56cf-4a94-8228-792d324a519e';

/** The keys of the sales, in each state that Polar knows. */
export const keys = {
  good: 'GOOD-1C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
  running: '2C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
  revoked: '3C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
  disabled: '4C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
  expired: '5C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
  unseen: '6C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
  unknown: '7C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA',
} as const;

export const sales: readonly PolarSale[] = [
  { licenseKey: keys.good, usage: 3, limitUsage: 100, limitActivations: 3 },
  { licenseKey: keys.running, expiresAt: Date.UTC(2099, 0, 1) },
  { licenseKey: keys.revoked, status: 'revoked' },
  { licenseKey: keys.disabled, status: 'disabled' },
  { licenseKey: keys.expired, expiresAt: Date.UTC(2026, 0, 1) },
  { licenseKey: keys.unseen },
];

/** Polar, the network in front of it, and an agent of it. */
export interface PolarHarness extends StoreHarness<PolarStore> {
  /** A call of the API as software sends it. */
  call(name: string, key: string, members?: object, headers?: Record<string, string>): Promise<HttpResponse>;
  validate(key: string, members?: object): Promise<HttpResponse>;
  /** Activates a key; returns the id of the activation. */
  activate(key: string, members?: object): Promise<string>;
}

/** The rate is not limited: tests ask faster than an agent does by default. */
export async function openPolar(sold: readonly PolarSale[] = sales): Promise<PolarStore> {
  const store = new PolarStore(organizationId, { accessToken });
  store.isLimited = false;
  for (const sale of sold) store.sell(sale);
  await store.start();
  return store;
}

export async function startPolar(configuration?: Configuration): Promise<PolarHarness> {
  const base = {
    upstream: { store: 'polar', access_token: accessToken },
    products: [{ key: organizationId }],
  };
  const harness = await startStoreHarness(await openPolar(), base, configuration);
  const call: PolarHarness['call'] = (name, key, members = {}, headers = {}) => {
    const json = { key, organization_id: organizationId, ...members };
    return harness.agent.client.post(`/v1/customer-portal/license-keys/${name}`, { json, headers });
  };
  return Object.assign(harness, {
    call,
    validate: (key: string, members?: object) => call('validate', key, members),
    async activate(key: string, members: object = {}) {
      const answer = await call('activate', key, { label: 'laptop', ...members });
      const { id } = answer.body as { id?: string };
      if (id === undefined) throw new Error(`not activated: ${answer.status} ${JSON.stringify(answer.body)}`);
      return id;
    },
  });
}
