import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openCliShop } from '../../../support/app/cli-shop.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const fileOf = (name: string): string => join(import.meta.dirname, `${name}.csv`);

type License = {
  license_key: string;
  buyer_email: string;
  enabled: boolean;
  uses: number;
  date: string;
  status?: string;
  expires_at?: string | null;
  seats?: number;
};
type Listed = { licenses: License[] };
type Shop = Awaited<ReturnType<typeof openCliShop>>;

/** The names in the addresses of the buyers whose keys are valid, and of the others. */
async function states(shop: Shop): Promise<{ valid: string[]; ended: string[]; disabled: string[] }> {
  const { licenses } = await shop.read<Listed>('license', 'list');
  const namesOf = (...statuses: string[]): string[] =>
    licenses
      .filter(({ status, enabled }) => statuses.includes(status ?? (enabled ? 'active' : 'disabled')))
      .map(({ buyer_email: email }) => email.replace('@example.com', ''))
      .toSorted();
  return { valid: namesOf('active'), ended: namesOf('expired'), disabled: namesOf('disabled') };
}

async function licenseOf(shop: Shop, buyer: string): Promise<License | undefined> {
  return (await shop.read<Listed>('license', 'list', '--email', `${buyer}@example.com`)).licenses[0];
}

/** Renews the ended license of a buyer. */
async function renewed(shop: Shop, buyer: string): Promise<License | undefined> {
  const { license_key: key = '' } = (await licenseOf(shop, buyer)) ?? {};
  await shop.run('license', 'renew', key, '--for', '1y');
  return await licenseOf(shop, buyer);
}

test.for(['purchase', 'license'])('the sales of Gumroad are imported with their states: %s', async (noun) => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Press', '--key', 'press');
  const imported = await shop.run(noun, 'import', fileOf('gumroad-sales'), '--from', 'gumroad');
  expect(imported).toMatchObject({ code: 0, err: '' });
  expect(imported.out).toContain('9 imported, 0 unchanged, 0 rejected\nIgnored columns: ');
  expect(imported.out).toContain('Left out, because they have no license key: 2 rows\n');
  expect(await states(shop)).toEqual({
    valid: ['good', 'member', 'part', 'won'],
    ended: ['ended'],
    disabled: ['disabled', 'disputed', 'refunded', 'revoked'],
  });
  expect(await licenseOf(shop, 'good')).toMatchObject({ uses: 2, date: '2024-02-22T11:23:05+00:00' });
  expect(await licenseOf(shop, 'ended')).toMatchObject({ expires_at: '2024-06-01T23:59:59+00:00' });
  expect(await licenseOf(shop, 'member')).toMatchObject({ expires_at: '2998-06-01T23:59:59+00:00' });
  const again = await shop.run(noun, 'import', fileOf('gumroad-sales'), '--from', 'gumroad');
  expect(again.out).toContain('0 imported, 9 unchanged, 0 rejected\n');
  expect(await renewed(shop, 'ended')).toMatchObject({ status: 'active' });
  if (noun !== 'purchase') return;
  const { purchases } = await shop.read<{ purchases: { purchase_id: string }[] }>(
    'purchase',
    'list',
    '--refunded',
    'true',
  );
  expect(purchases.map(({ purchase_id: id }) => id)).toEqual(['sale-refunded==']);
});

test('license keys of Lemon Squeezy are imported with states, ends and seats; a key that was never activated is valid', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Press', '--key', '77');
  const file = fileOf('lemonsqueezy-license-keys');
  const imported = await shop.run('license', 'import', file, '--from', 'lemonsqueezy');
  expect(imported).toMatchObject({ code: 0, err: '' });
  expect(imported.out).toContain('7 imported, 0 unchanged, 0 rejected\n');
  expect(await states(shop)).toEqual({
    valid: ['active', 'new', 'year'],
    ended: ['expired', 'late'],
    // The key of a subscription that has ended has no date.
    disabled: ['disabled', 'subscriber'],
  });
  expect(await licenseOf(shop, 'year')).toMatchObject({ expires_at: '2998-06-01T00:00:00+00:00', seats: 5 });
  expect(await licenseOf(shop, 'active')).toMatchObject({ expires_at: null, seats: 5 });
  for (const unlimited of ['new', 'late'])
    expect(await licenseOf(shop, unlimited)).not.toHaveProperty('seats');
  for (const ended of ['expired', 'late'])
    expect(await renewed(shop, ended)).toMatchObject({ status: 'active', enabled: true });
});

test('license keys of License Manager for WooCommerce are imported with states, ends, seats and empty cells', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Press', '--key', '77');
  const file = fileOf('woocommerce-license-keys');
  const imported = await shop.run('license', 'import', file, '--from', 'woocommerce');
  expect(imported).toMatchObject({ code: 0, err: '' });
  expect(imported.out).toContain('7 imported, 0 unchanged, 0 rejected\n');
  expect(await states(shop)).toEqual({
    valid: ['delivered', 'sold', 'stock', 'year'],
    ended: ['past'],
    disabled: ['disabled', 'inactive'],
  });
  expect(await licenseOf(shop, 'year')).toMatchObject({ expires_at: '2998-06-01T00:00:00+00:00', seats: 3 });
  for (const unlimited of ['sold', 'stock'])
    expect(await licenseOf(shop, unlimited)).not.toHaveProperty('seats');
  expect(await renewed(shop, 'past')).toMatchObject({ status: 'active', enabled: true });
});

test('with --product, a file with several products does not make keys of all of them keys of one', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Press', '--key', 'press');
  const file = fileOf('gumroad-sales');
  await using directory = temporaryDirectory();
  const one = await shop.run('license', 'import', file, '--from', 'gumroad', '--product', 'press');
  expect(one.out).toContain('9 imported, 0 unchanged, 0 rejected\n');
  const two = join(directory.path, 'two.csv');
  await writeFile(two, (await readFile(file, 'utf8')).replace(',press,1006,', ',other,1006,'));
  const mixed = await shop.run(
    'license',
    'import',
    two,
    '--from',
    'gumroad',
    '--product',
    'press',
    '--dry-run',
  );
  expect(mixed.code).toBe(1);
  expect(mixed.err).toContain('The row has "other" in Product ID, and the first row "press"');
});

test('a file of another form than the profile says lacks columns', async () => {
  await using shop = await openCliShop();
  const { code, err } = await shop.run(
    'license',
    'import',
    fileOf('gumroad-sales'),
    '--from',
    'lemonsqueezy',
  );
  expect(code).toBe(1);
  expect(err).toContain('The header does not name buyer_email.');
});

/** Imports lines of CSV with the profile of a store; the states after it. */
async function importLines(
  noun: string,
  from: string,
  lines: readonly string[],
  ...options: readonly string[]
): Promise<{ out: string; err: string } & Awaited<ReturnType<typeof states>>> {
  await using shop = await openCliShop();
  await using directory = temporaryDirectory();
  await shop.run('product', 'add', 'Press', '--key', 'press');
  const file = join(directory.path, 'file.csv');
  await writeFile(file, lines.join('\n'));
  const { out, err } = await shop.run(noun, 'import', file, '--from', from, '--product', 'press', ...options);
  return { out, err, ...(await states(shop)) };
}

test.for(['purchase', 'license'])(
  'Gumroad repeats the key of a membership in each renewal: the first sale decides, in any order: %s',
  async (noun) => {
    const header =
      'Purchase ID,Purchase Email,Purchase Time (UTC timezone),Fully Refunded?,Disputed?,Dispute Won?,Recurring Charge?,License Key,License Key Enabled?';
    const sales = [
      's1,member@example.com,2024-01-01 00:00:00 UTC,0,0,0,0,KEY-MEMBER,1',
      's2,ended@example.com,2024-01-01 00:00:00 UTC,1,0,0,0,KEY-ENDED,1',
    ];
    const renewals = [
      's3,member@example.com,2024-02-01 00:00:00 UTC,1,0,0,1,KEY-MEMBER,1',
      's4,member@example.com,2024-03-01 00:00:00 UTC,0,1,0,1,KEY-MEMBER,1',
      's5,ended@example.com,2024-02-01 00:00:00 UTC,0,0,0,1,KEY-ENDED,1',
    ];
    // The first sale of these memberships is not in the file.
    const alone = [
      's6,old@example.com,2024-02-01 00:00:00 UTC,1,0,0,1,KEY-OLD,1',
      's7,old@example.com,2024-03-01 00:00:00 UTC,0,0,0,1,KEY-OLD,1',
      's8,off@example.com,2024-03-01 00:00:00 UTC,0,0,0,1,KEY-OFF,0',
    ];
    for (const rows of [
      [...sales, ...renewals, ...alone],
      [...alone, ...renewals, ...sales],
    ]) {
      const { out, err, valid, disabled } = await importLines(noun, 'gumroad', [header, ...rows]);
      expect([err, valid, disabled]).toEqual(['', ['member', 'old'], ['ended', 'off']]);
      expect(out).toContain('4 imported, 0 unchanged, 0 rejected\n');
      expect(out).toContain('Left out, because they renew the key of another row: 4 rows\n');
    }
  },
);

test('a refund date in the file of a store disables the key, also in a column that is named as ours', async () => {
  const { valid, disabled } = await importLines('license', 'lemonsqueezy', [
    'key,user_email,status,refunded_at',
    'A-1,good@example.com,active,',
    'A-2,refunded@example.com,active,2024-06-01T00:00:00.000000Z',
  ]);
  expect([valid, disabled]).toEqual([['good'], ['refunded']]);
});

test('the formatted status of Lemon Squeezy decides if it is the only one', async () => {
  const { valid, disabled } = await importLines('license', 'lemonsqueezy', [
    'License key,Customer email,Status formatted',
    'A-1,good@example.com,Active',
    'A-2,disabled@example.com,Disabled',
  ]);
  expect([valid, disabled]).toEqual([['good'], ['disabled']]);
});

test.for([
  ['gumroad', 'License Key,Purchase Email', 'license_key_enabled'],
  ['lemonsqueezy', 'key,user_email', 'status or status_formatted'],
  ['woocommerce', 'license_key,user_email', 'status'],
] as const)('a file that lacks the state of its keys is refused: %s', async ([from, header, missing]) => {
  const { err, valid } = await importLines('license', from, [header, 'A-1,a@example.com']);
  expect(valid).toEqual([]);
  expect(err).toContain(`The header has no column ${missing}, which says whether a key is valid.`);
});

test('a column that a profile reads can be dismissed', async () => {
  const lines = ['key,user_email,status,expires_at', 'A-1,a@example.com,active,2020-01-01'];
  expect(await importLines('license', 'lemonsqueezy', lines)).toMatchObject({ ended: ['a'] });
  const dismissed = await importLines('license', 'lemonsqueezy', lines, '--ignore', 'expires_at');
  expect(dismissed).toMatchObject({
    valid: ['a'],
    out: expect.stringContaining('Ignored columns: expires_at'),
  });
});
