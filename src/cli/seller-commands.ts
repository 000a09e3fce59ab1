import { command, type CommandEntry, group } from './command.ts';

/** The commands about what is sold, and to whom. */
export const sellerCommands: readonly CommandEntry[] = [
  group('coupon', 'Create, change, list, quote and redeem coupons', [
    command(
      'create',
      'Create a coupon',
      async () => (await import('./commands/seller/coupon.ts')).createCoupon,
    ),
    command('list', 'List coupons', async () => (await import('./commands/seller/coupon.ts')).listCoupons),
    command(
      'show <id>',
      'Show a coupon',
      async () => (await import('./commands/seller/coupon.ts')).showCoupon,
    ),
    command(
      'quote <code> <items..>',
      'Ask what a coupon takes off a cart',
      async () => (await import('./commands/seller/checkout.ts')).quoteCoupon,
    ),
    command(
      'redeem <code> <order> <items..>',
      'Redeem a coupon for an order, once',
      async () => (await import('./commands/seller/checkout.ts')).redeemCoupon,
    ),
    command(
      'void <order>',
      'Give back the use of a coupon when its order was refunded',
      async () => (await import('./commands/seller/checkout.ts')).voidRedemption,
    ),
    command(
      'update <id>',
      'Change the dates, limits and notes of a coupon',
      async () => (await import('./commands/seller/coupon-change.ts')).updateCoupon,
    ),
    command(
      'end <id>',
      'End a coupon now',
      async () => (await import('./commands/seller/coupon-change.ts')).endCoupon,
    ),
    command(
      'delete <id>',
      'Delete a coupon that was never redeemed',
      async () => (await import('./commands/seller/coupon-change.ts')).deleteCoupon,
    ),
    command(
      'import <file>',
      'Import coupons from a CSV file of another store',
      async () => (await import('./commands/seller/import.ts')).importCoupons,
    ),
    command(
      'export <file>',
      'Export the coupons of an account to a new CSV file',
      async () => (await import('./commands/seller/export.ts')).exportCoupons,
    ),
  ]),
  group('account', 'Add and list accounts, roll their API keys', [
    command(
      'add <name>',
      'Add an account and its API key',
      async () => (await import('./commands/seller/account.ts')).addAccount,
    ),
    command(
      'roll <account>',
      'Make a new API key; the old one stops at once, or after a while',
      async () => (await import('./commands/seller/account.ts')).rollApiKey,
    ),
    command('list', 'List accounts', async () => (await import('./commands/seller/account.ts')).listAccounts),
  ]),
  group('product', 'Add, list and change products, roll their secrets', [
    command(
      'add <name>',
      'Add a product',
      async () => (await import('./commands/seller/product.ts')).addProduct,
    ),
    command('list', 'List products', async () => (await import('./commands/seller/product.ts')).listProducts),
    command(
      'show <product>',
      'Show a product',
      async () => (await import('./commands/seller/product.ts')).showProduct,
    ),
    command(
      'update <product>',
      'Rename a product, or change whether its price is recurring',
      async () => (await import('./commands/seller/product.ts')).updateProduct,
    ),
    command(
      'archive <product>',
      'Stop selling a product; its keys stay valid',
      async () => (await import('./commands/seller/product.ts')).archiveProduct,
    ),
    command(
      'unarchive <product>',
      'Sell an archived product again',
      async () => (await import('./commands/seller/product.ts')).unarchiveProduct,
    ),
    command(
      'roll <product>',
      'Make a new secret; the old one stops at once, or after a while',
      async () => (await import('./commands/seller/product.ts')).rollSecret,
    ),
  ]),
  group('collection', 'Add, list, show and change collections of products', [
    command(
      'list',
      'List collections',
      async () => (await import('./commands/seller/collection.ts')).listCollections,
    ),
    command(
      'show <collection>',
      'Show a collection',
      async () => (await import('./commands/seller/collection.ts')).showCollection,
    ),
    command(
      'update <collection> [products..]',
      'Change the name or the products of a collection',
      async () => (await import('./commands/seller/collection.ts')).updateCollection,
    ),
    command(
      'add <name> <products..>',
      'Add a collection of products',
      async () => (await import('./commands/seller/collection.ts')).addCollection,
    ),
  ]),
  group('license', 'Issue and list license keys, see what changed them', [
    command(
      'issue',
      'Record a purchase and issue its license key',
      async () => (await import('./commands/license.ts')).issueLicense,
    ),
    command('list', 'List licenses', async () => (await import('./commands/license.ts')).listLicenses),
    command(
      'show <key..>',
      'Show everything known about a license key',
      async () => (await import('./commands/license-show.ts')).showLicense,
    ),
    command(
      'history <key..>',
      'List what changed a license key',
      async () => (await import('./commands/history.ts')).licenseHistory,
    ),
    command(
      'import <file>',
      'Import licenses from a CSV file of another store',
      async () => (await import('./commands/seller/import.ts')).importLicenses,
    ),
    command(
      'export <file>',
      'Export all licenses to a new CSV file',
      async () => (await import('./commands/seller/export.ts')).exportLicenses,
    ),
  ]),
  group('purchase', 'Find and refund purchases', [
    command(
      'list',
      'List purchases, or find them by key, e-mail address or date',
      async () => (await import('./commands/seller/purchase.ts')).listPurchases,
    ),
    command(
      'show <purchase>',
      'Show a purchase, by its id or license key',
      async () => (await import('./commands/seller/purchase.ts')).showPurchase,
    ),
    command(
      'refund <purchase>',
      'Refund a purchase, which disables its license key',
      async () => (await import('./commands/seller/purchase.ts')).refundPurchase,
    ),
    command(
      'import <file>',
      'Import purchases, with their licenses, from a CSV file of another store',
      async () => (await import('./commands/seller/import.ts')).importPurchases,
    ),
    command(
      'export <file>',
      'Export all purchases to a new CSV file',
      async () => (await import('./commands/seller/export.ts')).exportPurchases,
    ),
  ]),
];
