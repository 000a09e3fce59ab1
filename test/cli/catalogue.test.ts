import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { coupon, startFakeDaemon } from '../support/process/fake-daemon.ts';

const editor = {
  product_key: 'RGsF',
  account_id: 'a1',
  name: 'Editor',
  recurring: false,
  archived: false,
};

test('coupon create sends only what was given, under the names of the specification', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: coupon } });
  const argv = ['coupon', 'create', '--code', 'FIVE', '--type', 'single', '--product', 'RGsF'];
  const outcome = await latchkey(...argv, '--amount-off', '550', '--state-dir', daemon.stateDir);
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

test('coupon list is a table, and with --json the list object', async () => {
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

test('coupon get takes a provisional, negative id', async () => {
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
  const shown = await latchkey('coupon', 'get', '-5', '--state-dir', daemon.stateDir);
  expect(shown.code).toBe(0);
  expect(shown.out).toMatch(/^redeemed +2 of 5 here$/m);
  expect(shown.out).toMatch(/^last by +A-2, A-1$/m);
  expect(daemon.received[0]?.line).toBe('GET /agent/v1/coupons/-5');
});

test('account add and roll show the API key once', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { account_id: 'a1', name: 'Shop', api_key: 'lk_api_x' } } });
  const added = await latchkey('account', 'add', 'Shop', '--state-dir', daemon.stateDir);
  expect(added.out).toContain('api key  lk_api_x');
  await latchkey('account', 'roll', 'a1', '--state-dir', daemon.stateDir);
  expect(daemon.received).toMatchObject([
    { line: 'POST /admin/v1/accounts', body: '{"name":"Shop"}' },
    { line: 'POST /admin/v1/accounts/a1/roll-key' },
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

test('account list and product list are tables', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { accounts: [{ account_id: 'a1', name: 'Shop' }] } } });
  const accounts = await latchkey('account', 'list', '--state-dir', daemon.stateDir);
  expect(accounts.out).toBe('ACCOUNT  NAME\na1       Shop\n');
  daemon.answer({ body: { data: { products: [{ ...editor, recurring: true }] } } });
  const products = await latchkey('product', 'list', '--state-dir', daemon.stateDir);
  expect(products.out).toBe(
    'PRODUCT  NAME    PRICE      STATE    ACCOUNT\nRGsF     Editor  recurring  on sale  a1\n',
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
  expect(out).toContain('secret   s3cret');
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

test('product roll and collection add call their routes', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { ...editor, secret: 'new' } } });
  await latchkey('product', 'roll', 'RGsF', '--state-dir', daemon.stateDir);
  daemon.answer({
    body: { data: { collection_id: 'c1', account_id: 'a1', name: 'Best', product_keys: ['A', 'B'] } },
  });
  const added = await latchkey('collection', 'add', 'Best', 'A', 'B', '--state-dir', daemon.stateDir);
  expect(added.out).toContain('products    A, B');
  expect(daemon.received).toMatchObject([
    { line: 'POST /admin/v1/products/RGsF/roll-secret' },
    { line: 'POST /admin/v1/collections', body: '{"name":"Best","product_keys":["A","B"]}' },
  ]);
});
