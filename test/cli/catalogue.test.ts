import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { coupon, license, startFakeDaemon } from '../support/process/fake-daemon.ts';

const editor = {
  product_key: 'RGsF',
  account_id: 'a1',
  name: 'Editor',
  recurring: false,
  archived: false,
  seats: null,
  lease_hold_s: 7_776_000,
  lease_term_s: 2_592_000,
  lease_refresh_s: 86_400,
  lease_email: false,
  license_for: null,
  entitlements: [],
  expiry_grace_s: 0,
};

test('coupon create sends the given options under the names of the specification', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: coupon } });
  const argv = ['coupon', 'create', '--code', 'FIVE', '--type', 'single', '--product', 'RGsF'];
  const outcome = await latchkey(...argv, '--amount-off', '5.50', '--state-dir', daemon.stateDir);
  expect(outcome).toMatchObject({ code: 0, err: '' });
  expect(outcome.out).toBe(
    [
      'coupon       7',
      'code         FIVE',
      'off          5.50',
      'for          product RGsF',
      'until        2030-01-01T00:00:00+00:00 (in 4 yr)',
      'minimum      10.00',
      'usage limit  5',
      '',
    ].join('\n'),
  );
  expect(daemon.received).toMatchObject([
    { line: 'POST /api/v2/coupons', body: 'code=FIVE&coupon_type=single&amount_off=550&product_key=RGsF' },
  ]);
});

test('coupon create sends all options, and marks a provisional coupon', async () => {
  await using daemon = await startFakeDaemon();
  // It ends after the daemon's now, which is long past here.
  daemon.answer({
    status: 201,
    body: { data: { ...coupon, id: -3, end_date: '2026-03-02T00:00:00+00:00' } },
  });
  const sent = {
    code: 'C',
    coupon_type: 'collection',
    percent_off: '5',
    collection_id: 'c1',
    usage_limit: '9',
    minimum_purchase_amount: '1000',
    start_date: '2026-03-01T00:00:00+00:00',
    end_date: '2026-03-02T00:00:00+00:00',
    notes: 'for friends',
  };
  const { coupon_type, collection_id, ...same } = sent;
  const options = {
    ...same,
    minimum_purchase_amount: '10.00',
    type: coupon_type,
    collection: collection_id,
  };
  const argv = Object.entries(options).flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, value]);
  const { out, err } = await latchkey('coupon', 'create', ...argv, '--state-dir', daemon.stateDir);
  expect(Object.fromEntries(new URLSearchParams(daemon.received[0]?.body))).toEqual(sent);
  expect(out).toMatch(
    /^Provisional: the store has not created it yet\. Until then its id is -3, which keeps working\.$/m,
  );
  expect(out).toMatch(/^To see progress: latchkey .+ outbox list$/m);
  expect(err).toBe('');
});

test('coupon list prints a table, and the list object with --json', async () => {
  await using daemon = await startFakeDaemon();
  const limited = { ...coupon, redemptions: 3, state: 'active' };
  const all = {
    ...coupon,
    id: -1,
    redemptions: 12,
    state: 'used_up',
    scope: 'this_agent',
    usage_limit: null,
    product_key: null,
    percent_off: 12.5,
    amount_off: null,
    end_date: null,
  };
  daemon.answer({ body: { data: { coupons: [limited, all] } } });
  const table = await latchkey('coupon', 'list', '--state-dir', daemon.stateDir);
  expect(table.out).toBe(
    [
      'ID  CODE  STATE                 OFF    FOR           UNTIL                      REDEEMED',
      '7   FIVE  active                5.50   product RGsF  2030-01-01T00:00:00+00:00  3 of 5',
      '-1  FIVE  used up, provisional  12.5%  all products  -                          12 here',
      '',
    ].join('\n'),
  );
  const machine = await latchkey('coupon', 'list', '--json', '--state-dir', daemon.stateDir);
  expect(JSON.parse(machine.out)).toEqual({ coupons: [limited, all], total: 2, next: null });
  expect(daemon.received[0]?.line).toBe('GET /agent/v1/coupons?limit=100&offset=0');
});

test('coupon show accepts a negative id', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({
    body: {
      data: {
        ...coupon,
        id: -5,
        redemptions: 2,
        state: 'active',
        orders: ['A-2', 'A-1'],
        scope: 'this_agent',
      },
    },
  });
  const shown = await latchkey('coupon', 'show', '-5', '--state-dir', daemon.stateDir);
  expect(shown.code).toBe(0);
  expect(shown.out).toMatch(/^redeemed +2 of 5 here$/m);
  expect(shown.out).toMatch(/^last by +A-2, A-1$/m);
  expect(daemon.received[0]?.line).toBe('GET /agent/v1/coupons/-5');
});

test('account add and rotate show the API key once', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { account_id: 'a1', name: 'Shop', api_key: 'lk_api_x' } } });
  const added = await latchkey('account', 'add', 'Shop', '--state-dir', daemon.stateDir);
  expect(added.out).toContain('api key  lk_api_x');
  await latchkey('account', 'rotate', 'a1', '--state-dir', daemon.stateDir);
  expect(daemon.received).toMatchObject([
    { line: 'POST /admin/v1/accounts', body: '{"name":"Shop"}' },
    { line: 'POST /admin/v1/accounts/a1/rotate-key' },
  ]);
});

test('account add takes the API key of an existing store from a file', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'shop.key');
  await writeFile(file, 'f00dfeedf00dfeed\n');
  daemon.answer({ body: { data: { account_id: 'a1', name: 'Shop', api_key: 'f00dfeedf00dfeed' } } });
  const argv = ['account', 'add', 'Shop', '--state-dir', daemon.stateDir, '--api-key-file'];
  expect((await latchkey(...argv, file)).code).toBe(0);
  expect(daemon.received[0]?.body).toBe('{"name":"Shop","api_key":"f00dfeedf00dfeed"}');
  expect(await latchkey(...argv, join(daemon.stateDir, 'absent'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('no such file') as string,
  });
  expect(daemon.received).toHaveLength(1);
});

test('purchase list passes its filters on, with whole days', async () => {
  await using daemon = await startFakeDaemon();
  const list = async (...argv: string[]): Promise<string | null> => {
    const { out } = await latchkey('purchase', 'list', ...argv, '--state-dir', daemon.stateDir);
    const { line = '' } = daemon.received.at(-1) ?? {};
    return out === '' ? null : line.replace('GET /admin/v1/purchases?', '');
  };
  const sold = { ...license, license_key: 'K' };
  const refunded_at = '2026-02-02T00:00:00+00:00';
  const purchase = {
    purchase_id: 'p1',
    date: '2026-01-02T00:00:00+00:00',
    refunded: true,
    refunded_at,
    license: sold,
  };
  daemon.answer({ body: { data: { purchases: [purchase] } } });
  const day = ['--since', '2026-01-01', '--until', '2026-01-01'];
  const named = [
    '--key',
    'K',
    '--email',
    'a@b.org',
    '--product',
    'P',
    '--account',
    'a1',
    '--refunded',
    'true',
  ];
  expect(await list(...named, ...day)).toBe(
    'license_key=K&buyer_email=a%40b.org&product_key=P&account_id=a1&since=2026-01-01T00%3A00%3A00%2B00%3A00&until=2026-01-01T23%3A59%3A59%2B00%3A00&refunded=true&limit=100&offset=0',
  );
  expect(await list()).toBe('limit=100&offset=0');
  // What is sold meanwhile would move what is read from one page to the next.
  expect(await list('--all')).toMatch(/^until=\d{4}-/);
  const { out } = await latchkey('purchase', 'list', '--state-dir', daemon.stateDir);
  expect(out).toMatch(/STATE +REFUNDED\np1 .* valid +2026-02-02T00:00:00\+00:00\n$/);
});

test('account list and product list print tables', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { accounts: [{ account_id: 'a1', name: 'Shop' }] } } });
  const accounts = await latchkey('account', 'list', '--state-dir', daemon.stateDir);
  expect(accounts.out).toBe('ACCOUNT  NAME\na1       Shop\n');
  const archived = { ...editor, product_key: 'GhTy', archived: true };
  daemon.answer({ body: { data: { products: [{ ...editor, recurring: true }, archived] } } });
  const products = await latchkey('product', 'list', '--state-dir', daemon.stateDir);
  expect(products.out).toBe(
    [
      'PRODUCT  NAME    PRICE      STATE     ACCOUNT',
      'RGsF     Editor  recurring  on sale   a1',
      'GhTy     Editor  once       archived  a1',
      '',
    ].join('\n'),
  );
  daemon.answer({ body: { data: { products: [] } } });
  expect((await latchkey('product', 'list', '--state-dir', daemon.stateDir)).out).toBe('none\n');
});

test('product add takes the secret of an existing store from a file', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'rgsf.secret');
  await writeFile(file, 's3cret\n');
  daemon.answer({
    body: { data: { ...editor, secret: 's3cret' } },
  });
  const argv = ['product', 'add', 'Editor', '--key', 'RGsF', '--state-dir', daemon.stateDir];
  const { code, out } = await latchkey(...argv, '--secret-file', file);
  expect(code).toBe(0);
  expect(out).toMatch(/^secret +s3cret$/m);
  expect(JSON.parse(daemon.received[0]?.body ?? '')).toEqual({
    name: 'Editor',
    product_key: 'RGsF',
    secret: 's3cret',
  });
  expect(await latchkey(...argv, '--secret-file', join(daemon.stateDir, 'absent'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('no such file') as string,
  });
});

test('product rotate and collection add call their routes', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { ...editor, secret: 'new' } } });
  await latchkey('product', 'rotate', 'RGsF', '--state-dir', daemon.stateDir);
  daemon.answer({
    body: { data: { collection_id: 'c1', account_id: 'a1', name: 'Best', product_keys: ['A', 'B'] } },
  });
  const added = await latchkey('collection', 'add', 'Best', 'A', 'B', '--state-dir', daemon.stateDir);
  expect(added.out).toContain('products    A, B');
  expect(daemon.received).toMatchObject([
    { line: 'POST /admin/v1/products/RGsF/rotate-secret' },
    { line: 'POST /admin/v1/collections', body: '{"name":"Best","product_keys":["A","B"]}' },
  ]);
});

test('product and collection commands use --account', async () => {
  await using daemon = await startFakeDaemon();
  const run = (...argv: string[]) => latchkey(...argv, '--account', 'a1', '--state-dir', daemon.stateDir);
  daemon.answer({ body: { data: { ...editor, secret: 'new' } } });
  const added = await run('product', 'add', 'Editor', '--recurring');
  expect(added.out).toMatch(/\nsecret +new\n\nThe secret is shown only this once\.\n$/);
  await run('product', 'list', '--archived', 'false');
  await run('collection', 'add', 'Best', 'A');
  await run('collection', 'list');
  expect(daemon.received).toMatchObject([
    { line: 'POST /admin/v1/products', body: '{"name":"Editor","recurring":true,"account_id":"a1"}' },
    { line: 'GET /admin/v1/products?account_id=a1&archived=false&limit=100&offset=0' },
    { line: 'POST /admin/v1/collections', body: '{"name":"Best","product_keys":["A"],"account_id":"a1"}' },
    { line: 'GET /admin/v1/collections?account_id=a1&limit=100&offset=0' },
  ]);
});
