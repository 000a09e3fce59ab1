import {
  GumroadStore,
  type GumroadProduct,
  type GumroadSale,
} from '../../../src/features/sandbox/stores/gumroad.ts';
import type { Configuration } from '../harness/agent-harness.ts';
import type { HttpResponse } from '../network/raw-http.ts';
import { startStoreHarness, type StoreHarness } from './store-harness.ts';

export const productId = 'SDGgCnivv6gTTHfVRfUBxQ==';
export const permalink = 'QMGY';
export const accessToken = 'token-of-the-seller';

/** The keys of the sales, in each state that Gumroad knows. */
export const keys = {
  good: '11111111-AAAAAAAA-11111111-AAAAAAAA',
  refunded: '22222222-BBBBBBBB-22222222-BBBBBBBB',
  disabled: '33333333-CCCCCCCC-33333333-CCCCCCCC',
  revoked: '44444444-DDDDDDDD-44444444-DDDDDDDD',
  ended: '55555555-EEEEEEEE-55555555-EEEEEEEE',
  running: '66666666-FFFFFFFF-66666666-FFFFFFFF',
  unseen: '77777777-ABCDEFAB-77777777-ABCDEFAB',
  unknown: '88888888-ABCDEFAB-88888888-ABCDEFAB',
} as const;

export const sales: readonly GumroadSale[] = [
  { licenseKey: keys.good, uses: 3 },
  { licenseKey: keys.refunded, purchase: { refunded: true } },
  { licenseKey: keys.disabled, isDisabled: true },
  { licenseKey: keys.revoked, isRevoked: true },
  { licenseKey: keys.ended, purchase: { subscription_ended_at: '2026-01-31T00:00:00Z' } },
  { licenseKey: keys.running, purchase: { subscription_cancelled_at: '2099-01-31T00:00:00Z' } },
  { licenseKey: keys.unseen },
];

/** Gumroad, the network in front of it, and an agent of it. */
export interface GumroadHarness extends StoreHarness<GumroadStore> {
  /** A call of the API as software sends it: by default a verify, with its parameters in a form. */
  call(licenseKey: string, parameters?: Record<string, string>, name?: string): Promise<HttpResponse>;
}

export async function openGumroad(
  products: readonly GumroadProduct[] = [{ productId, permalink }],
  sold: readonly GumroadSale[] = sales,
): Promise<GumroadStore> {
  const store = new GumroadStore(products, { accessToken });
  for (const sale of sold) store.sell(sale);
  await store.start();
  return store;
}

export async function startGumroad(
  configuration?: Configuration,
  products?: readonly GumroadProduct[],
): Promise<GumroadHarness> {
  const base = {
    upstream: { store: 'gumroad', access_token: accessToken },
    products: (products ?? [{ productId }]).map((each) => ({ key: each.productId })),
  };
  const harness = await startStoreHarness(await openGumroad(products), base, configuration);
  const call: GumroadHarness['call'] = (licenseKey, parameters = {}, name = 'verify') => {
    const { client } = harness.agent;
    const form = { product_id: productId, license_key: licenseKey, ...parameters };
    const path = `/v2/licenses/${name}`;
    return name === 'verify' ? client.post(path, { form }) : client.put(path, { form });
  };
  return Object.assign(harness, { call });
}
