/** A product from an agent's configuration. `secretDigest`: the digest of its secret key for the upstream. */
export type ConfiguredProduct = { productKey: string; secretDigest: string };

/** A product of an agent. Its id stays the same when a reload gives it another key or another secret. */
export type AgentProduct = ConfiguredProduct & { id: string };

/** The products that are configured now, and products that were configured before. */
export type ProductList = { configured: readonly AgentProduct[]; removed: readonly AgentProduct[] };

export const noProducts: ProductList = { configured: [], removed: [] };

/** How many removed products are kept, so that they are recognized when they come back. */
const maxRemoved = 1_000;

/**
 * Gives each configured product its id. A product is recognized by its secret, or by its key if the secret is new.
 *
 * For example: if two products swap their keys, or if a product is removed and comes back under another key, the ids stay
 * with the secrets.
 */
export function recognizeProducts(
  { configured: before, removed: removedBefore }: ProductList,
  configured: readonly ConfiguredProduct[],
): ProductList {
  const known = [...before, ...removedBefore];
  const found = new Map<ConfiguredProduct, string>();
  for (const property of ['secretDigest', 'productKey'] as const) {
    const taken = new Set(found.values());
    const left = known.filter(({ id }) => !taken.has(id));
    // If several products had this key, the first in the list was configured most recently.
    const idBy = new Map(left.toReversed().map((product) => [product[property], product.id]));
    for (const product of configured.filter((each) => !found.has(each))) {
      const id = idBy.get(product[property]);
      if (id !== undefined) found.set(product, id);
    }
  }
  const ids = new Set(known.map(({ id }) => id));
  const now = configured.map((product) => {
    const id = found.get(product) ?? unusedId(product.productKey, ids);
    ids.add(id);
    return { ...product, id };
  });
  const idsNow = new Set(now.map(({ id }) => id));
  const removed = known.filter(({ id }) => !idsNow.has(id)).slice(0, maxRemoved);
  return { configured: now, removed };
}

/** The product key, with a number if another product already has this id. */
function unusedId(productKey: string, ids: ReadonlySet<string>): string {
  let id = productKey;
  for (let count = 2; ids.has(id); count += 1) id = `${productKey}~${count}`;
  return id;
}
