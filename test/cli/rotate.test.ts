import type { ProductObject } from '../../src/wire/catalogue.ts';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

test('account rotate --keep-old 24h prints when the old key ends', async () => {
  await using daemon = await startFakeDaemon();
  const until = '2026-01-02T00:00:00+00:00';
  daemon.answer({ body: { data: { account_id: 'a', name: 'A', api_key: 'new', old_key_until: until } } });
  const { out } = await latchkey(
    'account',
    'rotate',
    'a',
    '--keep-old',
    '24h',
    '--state-dir',
    daemon.stateDir,
  );
  expect(out).toContain(`api key        new\nold one until  ${until} (58 days ago)\n`);
  expect(daemon.received[0]).toMatchObject({
    line: 'POST /admin/v1/accounts/a/rotate-key',
    body: '{"keep_old_s":86400}',
  });
});

test('product rotate prints when the old secret ends only with --keep-old', async () => {
  await using daemon = await startFakeDaemon();
  const rotate = async (...argv: string[]): Promise<string> =>
    (await latchkey('product', 'rotate', 'P', ...argv, '--state-dir', daemon.stateDir)).out;
  const product: ProductObject = {
    product_key: 'P',
    account_id: 'a',
    name: 'P',
    recurring: false,
    archived: false,
    seats: null,
    lease_hold_s: 0,
    lease_term_s: 600,
    lease_refresh_s: 60,
    lease_email: false,
    license_for: null,
    entitlements: [],
    expiry_grace_s: 0,
  };
  daemon.answer({ body: { data: { ...product, secret: 'new' } } });
  expect(await rotate()).toMatch(/^secret +new\n\n/m);
  const until = '2026-01-02T00:00:00+00:00';
  daemon.answer({ body: { data: { ...product, secret: 'new', old_secret_until: until } } });
  expect(await rotate('--keep-old', '24h')).toMatch(
    /^old one until +2026-01-02T00:00:00\+00:00 \(58 days ago\)$/m,
  );
  const line = 'POST /admin/v1/products/P/rotate-secret';
  expect(daemon.received).toMatchObject([
    { line, body: '{}' },
    { line, body: '{"keep_old_s":86400}' },
  ]);
});

test.each(['24', 'soon', '0', '10ms'])('--keep-old %s is misuse', async (given) => {
  const { code, err } = await latchkey('product', 'rotate', 'P', '--keep-old', given);
  expect([code, err]).toEqual([2, expect.stringContaining('--keep-old must be a duration')]);
});
