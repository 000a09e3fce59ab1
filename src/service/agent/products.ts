import {
  noProducts,
  recognizeProducts,
  type ConfiguredProduct,
  type AgentProduct,
  type ProductList,
} from '../../domain/agent/product.ts';
import { productCredential } from '../access/credential.ts';
import type { SettingReads, SettingTable, Reader, Transaction } from '../tables.ts';
import { upstreamProductName } from '../../domain/license.ts';

const setting = 'products';

export function storedProducts(settings: SettingReads): ProductList {
  const stored = settings.get(setting);
  return stored === null ? noProducts : (JSON.parse(stored) as ProductList);
}

export function storeProducts(settings: Pick<SettingTable, 'set'>, products: ProductList): void {
  settings.set(setting, JSON.stringify(products));
}

/** What the configuration changed for stored products. */
export type BoundProducts = {
  /** Products that have another key now. */
  renamed: readonly { from: string; to: string }[];
  /** Products that are no longer configured, and how many operations wait for them. */
  removed: readonly { productKey: string; operations: number }[];
};

/** Stores the configured products, and says what has changed. Products are compared by their ids, which never change. */
export function bindProducts({ settings, operations }: Transaction, products: ProductList): BoundProducts {
  const before = storedProducts(settings);
  const known = new Map(
    [...before.configured, ...before.removed].map(({ id, productKey }) => [id, productKey]),
  );
  const renamed = products.configured.flatMap(({ id, productKey }) => {
    const from = known.get(id) ?? productKey;
    return from === productKey ? [] : [{ from, to: productKey }];
  });
  const wasConfigured = new Set(before.configured.map(({ id }) => id));
  const removed = products.removed
    .map(({ id, productKey }) => ({ id, productKey, operations: operations.unfinishedOf(id) }))
    .filter(({ id, operations: waiting }) => waiting > 0 || wasConfigured.has(id))
    .map(({ productKey, operations: waiting }) => ({ productKey, operations: waiting }));
  storeProducts(settings, products);
  return { renamed, removed };
}

/**
 * The products of an agent. The code and the store use product ids, so that requests in progress and stored rows stay
 * valid if a product gets another key. People and API callers use product keys.
 */
export class AgentProducts {
  #list: ProductList;
  /** Product keys by id, including removed products. */
  #keys: ReadonlyMap<string, string> = new Map();
  #ids: ReadonlyMap<string, string> = new Map();

  constructor(stored: ProductList, configured: readonly ConfiguredProduct[]) {
    this.#list = stored;
    this.configure(configured);
  }

  configure(configured: readonly ConfiguredProduct[]): void {
    this.#list = recognizeProducts(this.#list, configured);
    const all = [...this.#list.configured, ...this.#list.removed];
    this.#keys = new Map(all.map(({ id, productKey }) => [id, productKey]));
    this.#ids = new Map(this.configured.map(({ id, productKey }) => [productKey, id]));
  }

  get list(): ProductList {
    return this.#list;
  }

  get configured(): readonly AgentProduct[] {
    return this.#list.configured;
  }

  /** Null if no configured product has this key. */
  idOf(productKey: string): string | null {
    return this.#ids.get(productKey) ?? null;
  }

  /** For a removed product, its last key. */
  keyOf(id: string): string {
    return this.#keys.get(id) ?? id;
  }

  /** Replaces the id of a product by its key. */
  credentialName(credential: string): string {
    const prefix = productCredential('');
    return credential.startsWith(prefix)
      ? productCredential(this.keyOf(credential.slice(prefix.length)))
      : credential;
  }
}

/** The product's name in the upstream's latest response for one of its keys; null if there was none. */
export function lastProductName({ snapshots }: Pick<Reader, 'snapshots'>, productKey: string): string | null {
  const [latest] = snapshots.latest(productKey, 1);
  const snapshot = latest === undefined ? null : snapshots.get(latest);
  return snapshot === null ? null : upstreamProductName(snapshot.license);
}
