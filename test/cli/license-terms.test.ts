import { expect, test } from 'vitest';
import { openCliShop } from '../support/app/cli-shop.ts';
import { blocksOf, readExample } from '../support/reference/guides.ts';

type Licensed = { license: Record<string, unknown> };

test('a license is sold for a year, shown with its terms, renewed and changed', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  const issue = ['license', 'issue', '--product', 'ED', '--email', 'b@example.com'];
  const terms = [
    '--expires',
    '2998-12-31',
    '--entitlement',
    'pro,export',
    '--seats',
    '5',
    '--uses-limit',
    '9',
  ];
  await shop.run(...issue, '--key', 'K-1', ...terms, '--metadata', '{"order": 7}');
  await shop.run(...issue, '--key', 'K-2');
  const shown = await shop.run('license', 'show', 'K-1');
  expect(shown.out).toMatch(/^valid +K-1\n/);
  expect(shown.out).toMatch(/^valid until +2998-12-31T23:59:59/m);
  expect(shown.out).toMatch(/^entitlements +export, pro$/m);
  expect(shown.out).toMatch(/^uses +0 of 9$/m);
  expect((await shop.read<{ seats: number }>('license', 'show', 'K-1')).seats).toBe(5);
  const listed = await shop.run('license', 'list');
  expect(listed.out).toMatch(/^LICENSE KEY .* VALID UNTIL .* ENTITLEMENTS$/m);
  expect(listed.out).toMatch(/^K-1 .* export, pro$/m);
  const renewed = await shop.read<Licensed['license']>('license', 'renew', 'K-1', '--for', '1y');
  expect(renewed['expires_at']).toBe('2999-12-31T23:59:59+00:00');
  const updated = await shop.run('license', 'update', 'K-1', '--expires', 'none', '--entitlement', 'none');
  expect(updated.out).toMatch(/^valid until +for ever$/m);
  expect(updated.out).not.toContain('entitlements');
  const history = await shop.run('license', 'history', 'K-1');
  expect(history.out).toMatch(/update .* 2999-12-31T23:59:59\+00:00 → for ever/);
  expect(history.out).toMatch(/renew .* 2998-12-31T23:59:59\+00:00 → 2999-12-31T23:59:59\+00:00/);
  expect((await shop.run('license', 'show', 'K-2')).out).not.toContain('valid until');
});

test('a license that has ended is shown as ended', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  const issue = ['license', 'issue', '--product', 'ED', '--email', 'b@example.com'];
  await shop.run(...issue, '--key', 'K-1', '--expires', '2020-01-31');
  expect((await shop.run('license', 'show', 'K-1')).out).toMatch(/^ended +K-1\n/);
  expect((await shop.run('license', 'list')).out).toMatch(/^K-1 +ended /m);
});

test('a license that is sold with an end in the past is shown as ended at once, and so is its purchase', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  const issue = ['license', 'issue', '--product', 'ED', '--email', 'b@example.com'];
  const sold = await shop.run(...issue, '--key', 'K-1', '--expires', '2020-01-31');
  expect(sold.out).toMatch(/^ended +K-1$/m);
  expect((await shop.run('purchase', 'show', 'K-1')).out).toMatch(/^ended +K-1$/m);
  const { purchases } = await shop.read<{ purchases: Licensed[] }>('purchase', 'list');
  expect(purchases.map(({ license }) => license['status'])).toEqual(['expired']);
  expect((await shop.run('purchase', 'refund', 'K-1')).out).toMatch(/^disabled +K-1$/m);
});

test('a license in its grace is shown as such, and a disabled license without the end of its grace', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED', '--expiry-grace', '7d');
  await shop.run('license', 'issue', '--product', 'ED', '--email', 'b@example.com', '--key', 'K-1');
  const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();
  const ended = await shop.run('license', 'update', 'K-1', '--expires', anHourAgo);
  expect(ended.out).toMatch(/^in grace +K-1\n/);
  expect(ended.out).toContain('answered as valid until');
  expect((await shop.run('license', 'list')).out).toMatch(/^K-1 +in grace /m);
  const verified = await shop.run('verify', 'K-1');
  expect([verified.code, verified.out]).toEqual([0, expect.stringMatching(/^in grace +K-1\n/)]);
  const disabled = await shop.run('disable', 'K-1');
  expect(disabled.out).toMatch(/^disabled +K-1\n/);
  expect(disabled.out).not.toContain('answered as valid');
});

test('a product says how long its licenses are valid, what they unlock and how long their grace is', async () => {
  await using shop = await openCliShop();
  const add = ['product', 'add', 'Editor', '--key', 'ED', '--license-for', '1y', '--entitlement', 'pro'];
  const added = await shop.run(...add, '--seats', '3');
  expect(added.out).toMatch(/^seats +3$/m);
  await shop.run('product', 'update', 'ED', '--expiry-grace', '7d');
  const product = await shop.run('product', 'show', 'ED');
  for (const { out } of [added, product]) {
    expect(out).toMatch(/^licenses are valid for +1y$/m);
    expect(out).toMatch(/^licenses unlock +pro$/m);
  }
  expect(product.out).toMatch(/^grace after their end +7d$/m);
  const sold = await shop.read<Licensed>('license', 'issue', '--product', 'ED', '--email', 'b@example.com');
  expect(sold.license).toMatchObject({ entitlements: ['pro'] });
  const days = (Date.parse(String(sold.license['expires_at'])) - Date.now()) / 86_400_000;
  expect([365, 366]).toContain(Math.round(days));
});

test.each([
  [['license', 'update', 'K-1'], 'Give something to change'],
  [['license', 'renew', 'K-1'], '--for'],
  [
    ['license', 'update', 'K-1', '--expires', 'yesterday'],
    '--expires must be a date such as 2030-12-31, a datetime, a time from now such as 30d or 1y, or none',
  ],
  [['license', 'update', 'K-1', '--expires', '2026-02-30'], '--expires must be a date'],
])('%s is misuse', async (argv, advice) => {
  await using shop = await openCliShop();
  const { code, err } = await shop.run(...argv);
  expect([code, err]).toEqual([2, expect.stringContaining(advice)]);
});

test('the commands of the guide about terms sell for a year, renew and change', async () => {
  await using shop = await openCliShop();
  const lines = blocksOf(readExample('guides/terms.md'), 'sh').flatMap((block) => block.trim().split('\n'));
  expect(lines.length).toBeGreaterThan(7);
  for (const line of lines) {
    const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
    const { code, err } = await shop.run(...words.slice(1));
    expect([line, code, err]).toEqual([line, 0, '']);
  }
  const team = await shop.read<Licensed>('license', 'show', 'TEAM-1');
  expect(team.license).toMatchObject({ seats: 10, entitlements: ['cloud', 'export', 'pro'] });
  const buyer = await shop.read<Licensed>('license', 'show', 'BUYER-1');
  const days = (Date.parse(String(buyer.license['expires_at'])) - Date.now()) / 86_400_000;
  expect([730, 731]).toContain(Math.round(days));
});
