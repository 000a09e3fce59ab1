import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

test('coupon list warns of coupons of the store that cannot be read', async () => {
  await using daemon = await startFakeDaemon();
  const body = { data: { coupons: [] } };
  const list = async (headers: Record<string, string>): Promise<string> => {
    daemon.answer({ body, headers: { 'x-total-count': '0', ...headers } });
    return (await latchkey('coupon', 'list', '--state-dir', daemon.stateDir)).err;
  };
  expect(await list({})).toBe('');
  expect(await list({ 'latchkey-left-out': '2' })).toBe(
    'latchkey: 2 coupons of the store cannot be read and are left out; the log says why\n',
  );
});
