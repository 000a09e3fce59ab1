/** What routes are for: the headings of the description, in its order. */
export const tags = {
  Licenses: 'Verify license keys, count their uses, enable and disable them.',
  Coupons: "A seller's coupons.",
  Checkout: 'What a coupon takes off a cart, and which orders have used it.',
  'First version': 'The first version of the store’s interface, for software that was written for it.',
  Products: 'What is sold, each with a secret of its own.',
  Collections: 'Groups of products that a coupon can be for.',
  Purchases: 'Sales and their refunds: each sale issues a license key.',
  Accounts: 'Sellers, each with an API key.',
  'Import and export': 'Catalogues from other stores, and to them.',
  Outbox: 'The changes that an agent carries to its upstream, and what a person decides about them.',
  Sync: "An agent's traffic with its upstream.",
  Tokens: 'Credentials that carry just the scopes that they were issued with.',
  Audit: 'What people have changed, on record for ever.',
  Server: 'Health, status, metrics and copies of this process.',
} as const;

export type Tag = keyof typeof tags;
