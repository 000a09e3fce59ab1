/** What an event of a store is about, in the words of the store. */
export type EventSubject = {
  readonly licenseKeys: readonly string[];
  readonly buyers: readonly string[];
  /** Keys, ids and links of products. */
  readonly products: readonly string[];
};

/** How many values of each kind one event may name: a forged event must not cost many look-ups. */
const maxValues = 100;

/** Members of events, in lower case and without separators, with what they contain at the stores. */
const meanings: ReadonlyMap<string, keyof EventSubject> = new Map([
  ...(['licensekey', 'licensekeys', 'key'] as const).map((name) => [name, 'licenseKeys'] as const),
  ...(['email', 'useremail', 'buyeremail', 'customeremail'] as const).map(
    (name) => [name, 'buyers'] as const,
  ),
  ...(
    ['productkey', 'productid', 'productlink', 'productpermalink', 'permalink', 'shortproductid'] as const
  ).map((name) => [name, 'products'] as const),
]);

/**
 * Finds the license keys, buyers and products that an event names. All stores use a few names for them, at different
 * places: Payhip in `items[]`, Lemon Squeezy in `data.attributes`, Gumroad at the top.
 */
export function subjectOf(event: unknown): EventSubject {
  const found = { licenseKeys: new Set<string>(), buyers: new Set<string>(), products: new Set<string>() };
  // A list instead of recursion: 64 KiB of JSON can be 30,000 levels deep.
  const left: { value: unknown; meaning: keyof EventSubject | undefined }[] = [
    { value: event, meaning: undefined },
  ];
  for (let each = left.pop(); each !== undefined; each = left.pop()) {
    const { value, meaning } = each;
    if (Array.isArray(value)) {
      for (const item of value as readonly unknown[]) left.push({ value: item, meaning });
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value))
        left.push({ value: member, meaning: meanings.get(name.toLowerCase().replaceAll(/[_-]/g, '')) });
    } else if (meaning !== undefined && (typeof value === 'string' || typeof value === 'number')) {
      const text = String(value).trim();
      if (text !== '' && found[meaning].size < maxValues) found[meaning].add(text);
    }
  }
  return {
    licenseKeys: [...found.licenseKeys],
    buyers: [...found.buyers].map((buyer) => buyer.normalize('NFC')),
    products: [...found.products],
  };
}

/** Whether an event names a product: by its key, or by a link that ends with the key. */
export function namesProduct({ products }: EventSubject, productKey: string): boolean {
  return products.some((product) => product === productKey || product.endsWith(`/${productKey}`));
}
