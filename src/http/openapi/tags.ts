/** The groups of routes, in the order of the document. */
export const tags = {
  Licenses: 'Verify license keys, count their uses, enable and disable them.',
  Coupons: "A seller's coupons.",
  Checkout: 'Quotes and redemptions: the discount of a coupon on a cart, and the orders that used it.',
  'First version': 'The first version of the store’s API, for existing software.',
  Products: 'Products, each with its own secret.',
  Collections: 'Groups of products that a coupon can be for.',
  Purchases: 'Sales and their refunds: each sale issues a license key.',
  Accounts: 'Sellers, each with an API key.',
  'Import and export': 'Import from and export to other stores.',
  Outbox: 'Changes that wait for the upstream of an agent, and decisions about them.',
  Sync: "An agent's traffic with its upstream.",
  Tokens: 'Credentials with limited scopes.',
  Audit: 'The permanent record of administrative changes.',
  Server: 'Health, status, metrics and backups of this process.',
} as const;

export type Tag = keyof typeof tags;
