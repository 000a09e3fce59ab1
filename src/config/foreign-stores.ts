import type { ForeignStoreName } from '../domain/header-names.ts';

/** What the configuration needs to know about a store with an API of its own. */
export type ForeignStore = {
  /** What people call the store. */
  readonly title: string;
  /** The default of `upstream.base_url`. */
  readonly baseUrl: string;
  /** The default of `sync.rate`, in requests a second: less than the store allows. */
  readonly rate: number;
  /** What an agent cannot do without `upstream.access_token`. */
  readonly withoutToken: string;
  /** What the store calls `products[].key`, and where the seller finds it. */
  readonly productKey: { readonly name: string; readonly where: string };
};

/** The default of `sync.rate` at any other upstream, and at a store that states no limit. */
export const defaultRate = 5;

export const foreignStores: Readonly<Record<ForeignStoreName, ForeignStore>> = {
  gumroad: {
    title: 'Gumroad',
    baseUrl: 'https://api.gumroad.com',
    rate: defaultRate,
    withoutToken: 'license keys are not enabled or disabled from here',
    productKey: { name: 'product_id', where: 'Content, under the license key' },
  },
  lemonsqueezy: {
    title: 'Lemon Squeezy',
    baseUrl: 'https://api.lemonsqueezy.com',
    // 60 a minute are allowed, and two seconds of requests may come at once.
    rate: 0.9,
    withoutToken: 'the seat of an activation whose answer was lost is not found',
    productKey: { name: 'store_id', where: 'Settings, Stores, without the #' },
  },
};

export function isForeignStore(name: unknown): name is ForeignStoreName {
  return typeof name === 'string' && Object.hasOwn(foreignStores, name);
}

/** The defaults that a store has, for the reference of the settings; `usual`: the default elsewhere. */
export function ofStores(
  defaultOf: (store: ForeignStore) => string | number,
  usual?: string | number,
): string[] {
  return Object.entries(foreignStores)
    .filter(([, store]) => defaultOf(store) !== usual)
    .map(([name, store]) => `\`${defaultOf(store)}\` if \`upstream.store\` is \`${name}\``);
}
