import {
  LemonSqueezyStore,
  type LemonSqueezySale,
} from '../../../src/features/sandbox/stores/lemonsqueezy.ts';
import type { Configuration } from '../harness/agent-harness.ts';
import type { HttpResponse } from '../network/raw-http.ts';
import { startStoreHarness, type StoreHarness } from './store-harness.ts';

export const storeId = 76833;
export const apiKey = 'api-key-of-the-seller';

/** The keys of the sales, in each state that Lemon Squeezy knows. */
export const keys = {
  good: '11111111-5104-4067-a91d-77b872934d51',
  disabled: '22222222-5104-4067-a91d-77b872934d51',
  expired: '33333333-5104-4067-a91d-77b872934d51',
  running: '44444444-5104-4067-a91d-77b872934d51',
  full: '55555555-5104-4067-a91d-77b872934d51',
  unseen: '77777777-5104-4067-a91d-77b872934d51',
  ofAnotherSeller: '88888888-5104-4067-a91d-77b872934d51',
  unknown: '99999999-5104-4067-a91d-77b872934d51',
} as const;

export const sales: readonly LemonSqueezySale[] = [
  { licenseKey: keys.good },
  { licenseKey: keys.disabled, isDisabled: true },
  { licenseKey: keys.expired, expiresAt: Date.parse('2026-01-31T00:00:00Z') },
  { licenseKey: keys.running, expiresAt: Date.parse('2099-01-31T00:00:00Z') },
  { licenseKey: keys.full, limit: 0 },
  { licenseKey: keys.unseen },
  { licenseKey: keys.ofAnotherSeller, storeId: 1 },
];

type CallName = 'validate' | 'activate' | 'deactivate';

/** Lemon Squeezy, the network in front of it, and an agent of it. */
export interface LemonSqueezyHarness extends StoreHarness<LemonSqueezyStore> {
  /** A call of the API as software sends it, with its parameters in a form. */
  call(name: CallName, licenseKey: string, parameters?: Record<string, string>): Promise<HttpResponse>;
  /** Activates a key that is known. Returns the id of the instance. */
  activate(licenseKey?: string, name?: string): Promise<string>;
}

export async function openLemonSqueezy(
  sold: readonly LemonSqueezySale[] = sales,
): Promise<LemonSqueezyStore> {
  const store = new LemonSqueezyStore([storeId], { apiKey });
  for (const sale of sold) store.sell(sale);
  await store.start();
  return store;
}

export async function startLemonSqueezy(configuration?: Configuration): Promise<LemonSqueezyHarness> {
  const base = {
    upstream: { store: 'lemonsqueezy', access_token: apiKey },
    products: [{ key: String(storeId) }],
  };
  const harness = await startStoreHarness(await openLemonSqueezy(), base, configuration);
  const call: LemonSqueezyHarness['call'] = (name, licenseKey, parameters = {}) =>
    harness.agent.client.post(`/v1/licenses/${name}`, { form: { license_key: licenseKey, ...parameters } });
  const activate = async (licenseKey: string = keys.good, name = 'Laptop'): Promise<string> => {
    const { body } = await call('activate', licenseKey, { instance_name: name });
    return (body as { instance: { id: string } }).instance.id;
  };
  return Object.assign(harness, { call, activate });
}
