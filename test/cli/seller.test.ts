import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openCliShop } from '../support/app/cli-shop.ts';
import { product } from '../support/builders/store-builders.ts';

type Purchase = { purchase_id: string; license: { license_key: string } };
type Page<Member extends string> = Record<Member, object[]> & { total: number; next: number | null };

test('a purchase is found by the buyer and refunded by the license key', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  const issue = ['license', 'issue', '--product', 'ED', '--email'];
  const sold = await shop.read<Purchase>(...issue, 'Ann@Example.com');
  await shop.run(...issue, 'ben@example.com');
  const key = sold.license.license_key;
  const found = await shop.read<Page<'purchases'>>('purchase', 'list', '--email', 'ann@example.com');
  expect(found).toMatchObject({ purchases: [sold], total: 1, next: null });
  const byKey = await shop.run('purchase', 'show', key.toLowerCase());
  expect(byKey).toMatchObject({ code: 0, err: '' });
  expect(byKey.out).toContain(sold.purchase_id);
  for (const named of [sold.purchase_id, key.toLowerCase()]) {
    expect(await shop.read('purchase', 'show', named)).toEqual(sold);
  }
  const refunded = await shop.run('purchase', 'refund', key);
  expect(refunded.out).toMatch(new RegExp(`refunded {2}\\d{4}-.*\\ndisabled {2}${key}`));
  expect(await shop.run('purchase', 'refund', key)).toMatchObject({
    code: 0,
    err: expect.stringContaining('already refunded') as string,
  });
  expect((await shop.run('license', 'list', '--email', 'ann@example.com')).out).toContain('refunded');
  expect((await shop.run('purchase', 'list', '--refunded', 'false')).out).toContain('ben@example.com');
});

test('purchase show looks up an unknown purchase by id and by key', async () => {
  await using shop = await openCliShop();
  for (const act of ['show', 'refund']) {
    for (const named of ['none', 'x'.repeat(101), '../licenses', '%2F', 'ключ']) {
      const { code, out, err } = await shop.run('purchase', act, named);
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain('purchase_not_found');
      expect(err).toContain('purchase list --email');
    }
  }
});

test('enable requires --refunded only for a refunded key', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  const issue = ['license', 'issue', '--product', 'ED', '--email', 'b@example.com', '--key'];
  for (const key of ['K-1', 'K-2']) await shop.run(...issue, key);
  await shop.run('purchase', 'refund', 'K-1');
  const refused = await shop.run('enable', 'K-1');
  expect([refused.code, refused.out]).toEqual([1, '']);
  expect(refused.err).toMatch(/refunded, at \d{4}-.*\n.*--refunded/);
  expect((await shop.run('verify', 'K-1')).code).toBe(1);
  expect((await shop.run('enable', 'K-1', '--refunded')).out).toMatch(/^valid/);
  await shop.run('disable', 'K-2');
  expect((await shop.run('enable', 'K-2')).out).toMatch(/^valid/);
  expect((await shop.run('enable', 'none')).err).toContain('license_not_found');
});

test('license show prints the purchase, the product and the last changes', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'My editor', '--key', 'ED');
  await shop.run('license', 'issue', '--product', 'ED', '--email', 'b@example.com', '--key', 'K-1');
  await shop.run('use', 'K-1');
  await shop.run('purchase', 'refund', 'K-1');
  const { code, out } = await shop.run('license', 'show', 'K-1');
  expect(code).toBe(0);
  expect(out).toMatch(/^disabled +K-1\nuses +1\n/);
  expect(out).toMatch(/product name +My editor\npurchase +[0-9a-f-]{36}\nrefunded +\d{4}/);
  for (let more = 0; more < 5; more += 1) await shop.run('use', 'K-1');
  const again = await shop.run('license', 'show', 'K-1');
  expect(again.out).toMatch(/AT +CHANGE +BY CREDENTIAL +USES +STATE\n/);
  expect(again.out.match(/^\d.* usage .* \d → \d /gm)).toHaveLength(5);
  const shown = await shop.read<{ changes: object[] }>('license', 'show', 'K-1');
  expect(shown).toMatchObject({ license: { license_key: 'K-1', uses: 6 }, product_name: 'My editor' });
  expect(shown.changes).toHaveLength(5);
  const file = join(shop.directory, 'licenses.csv');
  await writeFile(file, 'license_key,product_key,buyer_email\nK-2,ED,b@example.com\n');
  await shop.run('license', 'import', file);
  expect((await shop.run('license', 'show', 'K-2')).out).toMatch(/^purchase +none: not sold here$/m);
  const missing = await shop.run('license', 'show', 'none');
  expect([missing.code, missing.out]).toEqual([1, '']);
  expect(missing.err).toContain('license_not_found');
});

test('product commands rename, archive and unarchive a product one at a time', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED', '--recurring');
  await shop.run('product', 'archive', 'ED');
  await shop.run('product', 'update', 'ED', '--name', 'Editor 2');
  const renamed = {
    product_key: 'ED',
    account_id: 'default',
    name: 'Editor 2',
    recurring: true,
    seats: null,
    lease_hold_s: 7_776_000,
    lease_term_s: 2_592_000,
    lease_refresh_s: 86_400,
    lease_email: false,
    license_for: null,
    entitlements: [],
    expiry_grace_s: 0,
  };
  expect(await shop.read('product', 'show', 'ED')).toEqual({ ...renamed, archived: true });
  const issue = ['license', 'issue', '--product', 'ED', '--email', 'b@example.com'];
  expect((await shop.run(...issue)).err).toContain('product_archived');
  await shop.run('product', 'update', 'ED', '--recurring', 'false');
  await shop.run('product', 'unarchive', 'ED');
  expect(await shop.read('product', 'show', 'ED')).toEqual({ ...renamed, recurring: false, archived: false });
  await shop.run('product', 'update', 'ED', '--seats', '3', '--hold', '0', '--lease-email', 'true');
  await shop.run('product', 'update', 'ED', '--term', '1h', '--refresh', '5m', '--lease-email', 'false');
  expect(await shop.read('product', 'show', 'ED')).toMatchObject({
    seats: 3,
    lease_hold_s: 0,
    lease_term_s: 3600,
    lease_refresh_s: 300,
    lease_email: false,
  });
  expect((await shop.run('product', 'show', 'ED')).out).toMatch(/leases last +1h/);
  expect((await shop.run('product', 'update', 'ED', '--seats', 'many')).err).toContain(
    '1000000, or unlimited',
  );
  expect(await shop.run('product', 'update', 'ED', '--hold', 'long')).toMatchObject({ code: 2 });
  expect(await shop.run('product', 'update', 'ED')).toMatchObject({ code: 2 });
  expect((await shop.run('product', 'archive', 'none')).err).toContain('product_not_found');
});

test('collection commands list, rename and change a collection', async () => {
  await using shop = await openCliShop();
  for (const key of ['A', 'B']) await shop.run('product', 'add', key, '--key', key);
  await shop.run('collection', 'add', 'Both', 'A', 'B', '--id', 'C');
  await shop.run('collection', 'update', 'C', '--name', 'Each');
  await shop.run('collection', 'update', 'C', 'B');
  const collection = { collection_id: 'C', account_id: 'default', name: 'Each', product_keys: ['B'] };
  expect(await shop.read('collection', 'show', 'C')).toEqual(collection);
  const listed = await shop.read<Page<'collections'>>('collection', 'list');
  expect(listed).toEqual({ collections: [collection], total: 1, next: null });
  expect((await shop.run('collection', 'update', 'C')).code).toBe(2);
  expect((await shop.run('collection', 'update', 'C', 'Z')).err).toContain(
    'The account has no such product.',
  );
});

test('a list says how to continue, and --all shows all of it', async () => {
  await using shop = await openCliShop();
  for (let number = 100; number < 305; number += 1) {
    const productKey = `P${number}`;
    await shop.write(({ products }) => products.add({ ...product, productKey }, `digest-${number}`));
  }
  const page = await shop.read<Page<'products'>>('product', 'list', '--limit', '2', '--offset', '3');
  expect(page).toMatchObject({ products: [{ product_key: 'P103' }, {}], total: 205, next: 5 });
  expect((await shop.run('product', 'list', '--limit', '2')).out).toContain(
    '2 of 205; continue with --offset 2',
  );
  const all = await shop.read<Page<'products'>>('product', 'list', '--all');
  expect([all.products.length, all.total, all.next]).toEqual([205, 205, null]);
  expect((await shop.run('product', 'list', '--all')).out.trim().split('\n')).toHaveLength(206);
  const last = await shop.read<Page<'products'>>('product', 'list', '--all', '--offset', '203');
  expect(last.products).toHaveLength(2);
});

test('a list continues beyond the largest offset of the daemon', async () => {
  await using shop = await openCliShop();
  await shop.write(async ({ products }) => {
    for (let number = 0; number < 10_150; number += 1) {
      const productKey = `P${String(number).padStart(5, '0')}`;
      await products.add({ ...product, productKey }, `digest-${number}`);
    }
  });
  const page = await shop.read<Page<'products'>>('product', 'list', '--limit', '3', '--offset', '10120');
  expect(page.products.map((each) => 'product_key' in each && each.product_key)).toEqual([
    'P10120',
    'P10121',
    'P10122',
  ]);
  expect([page.total, page.next]).toEqual([10_150, 10_123]);
  const last = await shop.read<Page<'products'>>('product', 'list', '--offset', '10140');
  expect([last.products.length, last.next]).toEqual([10, null]);
  const behind = await shop.read<Page<'products'>>('product', 'list', '--offset', '20000');
  expect(behind.products).toEqual([]);
  const all = await shop.read<Page<'products'>>('product', 'list', '--all');
  expect([all.products.length, all.next]).toEqual([10_150, null]);
});

test('a plain date is the start or end of its day in UTC, and the command prints that', async () => {
  await using shop = await openCliShop();
  const create = ['coupon', 'create', '--code', 'NY', '--type', 'multi', '--percent-off', '20'];
  const made = await shop.run(...create, '--start-date', '2089-12-01', '--end-date', '2089-12-31');
  expect(made.out).toMatch(
    /^from {4}2089-12-01T00:00:00\+00:00 \(in \d+ yr\)\nuntil {3}2089-12-31T23:59:59\+00:00/m,
  );
  expect(made.err).toBe(
    '--start-date 2089-12-01 is taken as 2089-12-01T00:00:00+00:00 (UTC)\n' +
      '--end-date 2089-12-31 is taken as 2089-12-31T23:59:59+00:00 (UTC)\n',
  );
  for (const date of ['2089-02-30', '31.12.2089', 'tomorrow']) {
    expect((await shop.run('coupon', 'update', '1', '--end-date', date)).code).toBe(2);
  }
});

test('coupon create warns of an end date in the past', async () => {
  await using shop = await openCliShop();
  const create = ['coupon', 'create', '--code', 'OLD', '--type', 'multi', '--percent-off', '20'];
  const { code, err } = await shop.run(...create, '--end-date', '2020-01-01T00:00:00Z');
  expect(code).toBe(0);
  expect(err).toBe(
    'latchkey: this coupon can never apply: it ended in the past, at 2020-01-01T00:00:00+00:00\n',
  );
});

test('coupon update warns of an end date in the past and prints how it read the dates', async () => {
  await using shop = await openCliShop();
  await shop.run('coupon', 'create', '--code', 'OLD', '--type', 'multi', '--percent-off', '20');
  expect((await shop.run('coupon', 'update', '1', '--end-date', '2020-01-01')).err).toBe(
    '--end-date 2020-01-01 is taken as 2020-01-01T23:59:59+00:00 (UTC)\n' +
      'latchkey: this coupon can never apply: it ended in the past, at 2020-01-01T23:59:59+00:00\n',
  );
});

test('coupon commands update, end and delete a coupon', async () => {
  await using shop = await openCliShop();
  const create = ['coupon', 'create', '--code', 'SPRING', '--type', 'multi', '--percent-off', '20'];
  const made = await shop.read<object>(...create, '--usage-limit', '5', '--notes', 'for friends');
  const update = async (...argv: string[]): Promise<unknown> =>
    await shop.read('coupon', 'update', '1', ...argv);
  const until = { end_date: '2089-12-31T23:59:59+00:00' };
  expect(await update('--end-date', '2089-12-31')).toEqual({ ...made, ...until });
  const from = { start_date: '2089-12-01T00:00:00+00:00', minimum_purchase_amount: 1_000 };
  const dated = await update('--start-date', '2089-12-01', '--minimum-purchase-amount', '10.00');
  expect(dated).toEqual({ ...made, ...until, ...from });
  expect(await update('--start-date', 'none', '--end-date', 'none')).toEqual({
    ...made,
    minimum_purchase_amount: 1_000,
  });
  await update('--minimum-purchase-amount', 'none', '--end-date', '2089-12-31');
  expect(await update('--usage-limit', 'none', '--notes', 'none', '--amount-off', '500c')).toEqual({
    ...made,
    ...until,
    usage_limit: null,
    notes: null,
    percent_off: null,
    amount_off: 500,
  });
  expect(await update('--percent-off', '30')).toMatchObject({ percent_off: 30, amount_off: null });
  expect(await update('--code', 'none')).toMatchObject({ code: 'none' });
  expect((await shop.run('coupon', 'end', '1')).out).not.toContain('2089');
  expect((await shop.run('coupon', 'delete', '1')).out).toMatch(/^deleted\n\ncoupon +1\n/);
  expect((await shop.run('coupon', 'delete', '1')).err).toContain('coupon_not_found');
  expect((await shop.run('coupon', 'update', 'x', '--notes', 'y')).err).toContain('coupon_not_found');
});

test.each<[argv: string[], complaint: string]>([
  [[], 'Give something to change'],
  [['--percent-off', '20', '--amount-off', '5'], 'cannot be combined'],
  [['--amount-off', '5'], '--amount-off 5 could be money or cents: use 5.00 or 5c'],
  [['--minimum-purchase-amount', '60'], 'use 60.00 or 60c'],
  [['--amount-off', '5.001'], '--amount-off 5.001 is not an amount such as 5.00 or 500c'],
  [['--amount-off=-5.00'], '--amount-off -5.00 is not an amount'],
  [['--notes', ''], '--notes is empty: use none to remove the value'],
])('coupon update %j is a usage error', async (argv, complaint) => {
  await using shop = await openCliShop();
  const { code, err } = await shop.run('coupon', 'update', '1', ...argv);
  expect([code, err]).toEqual([2, expect.stringContaining(complaint)]);
});

test('the command line serves a whole day of a seller', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'My editor', '--key', 'ED');
  const spring = ['--code', 'SPRING', '--type', 'single', '--product', 'ED', '--percent-off', '20'];
  const create = ['coupon', 'create', ...spring, '--usage-limit', '1', '--end-date', '2089-12-31'];
  const coupon = await shop.read<{ id: number }>(...create);
  const sold = await shop.read<Purchase>('license', 'issue', '--product', 'ED', '--email', 'ann@example.com');
  const key = sold.license.license_key;
  const quoted = await shop.read('coupon', 'quote', 'spring', 'ED=19.99');
  expect(quoted).toMatchObject({ redeemable: true, discount: 400, total: 1599 });
  const redeemed = await shop.read('coupon', 'redeem', 'SPRING', 'order-1', 'ED=19.99');
  expect(redeemed).toMatchObject({ order: 'order-1', discount: 400 });
  expect((await shop.run('coupon', 'list')).out).toMatch(/SPRING +used up/);
  expect((await shop.run('coupon', 'delete', String(coupon.id))).err).toContain('coupon_redeemed');
  expect((await shop.run('coupon', 'update', String(coupon.id), '--percent-off', '30')).err).toContain(
    'coupon_redeemed',
  );
  const found = await shop.read<Page<'purchases'>>('purchase', 'list', '--email', 'ANN@example.com');
  expect(found.purchases).toMatchObject([{ purchase_id: sold.purchase_id, refunded: false }]);
  expect((await shop.run('purchase', 'refund', key)).code).toBe(0);
  expect((await shop.run('verify', key)).code).toBe(1);
  expect((await shop.run('coupon', 'void', 'order-1')).code).toBe(0);
  expect((await shop.run('coupon', 'list')).out).toMatch(/SPRING +active/);
  await shop.run('coupon', 'end', String(coupon.id));
  expect((await shop.run('coupon', 'list')).out).toMatch(/SPRING +ended/);
  const audit = await shop.read<Page<'acts'>>('audit', 'list', '--all');
  expect(audit.acts.map((each) => (each as { act: string }).act)).toEqual(
    expect.arrayContaining(['product.add', 'purchase.add', 'purchase.refund', 'coupon.end']),
  );
  expect((await shop.run('license', 'show', key)).out).toContain('refund');
});

test('purchase refund rejects an empty argument', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  await shop.run('license', 'issue', '--product', 'ED', '--email', 'b@example.com', '--key', 'K-1');
  const commands = [
    ['purchase', 'refund'],
    ['purchase', 'show'],
    ['license', 'show'],
    ['enable'],
    ['product', 'archive'],
    ['coupon', 'end'],
    ['collection', 'update', 'C'],
  ];
  for (const argv of commands) {
    for (const blank of ['', ' ', '\t']) {
      const { code, out, err } = await shop.run(...argv, blank);
      expect([argv, code, out]).toEqual([argv, 2, '']);
      expect(err).toContain('is empty');
    }
  }
  expect((await shop.run('purchase', 'list', '--refunded', 'true')).out).toBe('none\n');
});
