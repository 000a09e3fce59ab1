import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

test('account roll --keep-old 24h says until when the old key goes on', async () => {
  await using daemon = await startFakeDaemon();
  const until = '2026-01-02T00:00:00+00:00';
  daemon.answer({ body: { data: { account_id: 'a', name: 'A', api_key: 'new', old_key_until: until } } });
  const { out } = await latchkey('account', 'roll', 'a', '--keep-old', '24h', '--state-dir', daemon.stateDir);
  expect(out).toContain(`api key        new\nold one until  ${until} (58 days ago)\n`);
  expect(daemon.received[0]).toMatchObject({
    line: 'POST /admin/v1/accounts/a/roll-key',
    body: '{"keep_old_s":86400}',
  });
});

test('product roll without --keep-old asks for no overlap', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { product_key: 'P', name: 'P', recurring: false, secret: 'new' } } });
  const { out } = await latchkey('product', 'roll', 'P', '--state-dir', daemon.stateDir);
  expect(out).not.toContain('old one');
  expect(daemon.received[0]).toMatchObject({ line: 'POST /admin/v1/products/P/roll-secret', body: '{}' });
});

test.each(['24', 'soon', '0', '10ms'])('--keep-old %s is misuse', async (given) => {
  const { code, err } = await latchkey('product', 'roll', 'P', '--keep-old', given);
  expect([code, err]).toEqual([2, expect.stringContaining('--keep-old must be a duration')]);
});
