import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

test.each(['amount-off', 'minimum-purchase-amount'])(
  'coupon create asks whether a number of --%s is money or cents',
  async (option) => {
    await using daemon = await startFakeDaemon();
    const argv = ['coupon', 'create', '--code', 'FIVE', '--type', 'multi', `--${option}`];
    const { code, err } = await latchkey(...argv, '5', '--state-dir', daemon.stateDir);
    expect([code, daemon.received]).toEqual([2, []]);
    expect(err).toContain(`latchkey: --${option} 5 could be money or cents: use 5.00 or 5c`);
    for (const [text, cents] of [
      ['5.00', '500'],
      ['4,9', '490'],
      ['500c', '500'],
    ] as const) {
      await latchkey(...argv, text, '--state-dir', daemon.stateDir);
      expect(daemon.received.at(-1)?.body).toContain(`=${cents}`);
    }
  },
);

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
