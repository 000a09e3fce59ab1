import { expect, test, vi } from 'vitest';
import { openCliShop } from '../../../support/app/cli-shop.ts';
import { patienceMs } from '../../../support/patience.ts';
import { isWindows } from '../../../support/platform.ts';
import { ownProgram } from '../../../support/process/command-line.ts';
import { openPseudoTerminal } from '../../../support/process/pseudo-terminal.ts';

test('a seller gives a license another key, count and buyer with commands', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  await shop.run('license', 'issue', '--product', 'ED', '--email', 'ann@example.com', '--key', 'K-1');
  const rekeyed = await shop.read<{ license_key: string }>('license', 'rekey', 'K-1');
  const key = rekeyed.license_key;
  expect(key).toMatch(/^[A-Z2-9]{5}(?:-[A-Z2-9]{5}){3}$/);
  const words = key.toLowerCase().split('-');
  const set = await shop.run('license', 'set-uses', key, '7');
  expect(set.out).toMatch(new RegExp(`^valid +${key}\nuses +7\n`));
  const moved = await shop.run('license', 'transfer', ...words, '--email', 'bob@example.com');
  expect(moved.out).toMatch(/buyer +bob@example.com/);
  const old = await shop.run('license', 'show', 'K-1');
  expect(old.out).toMatch(/^disabled +K-1/);
  expect(old.out).toMatch(new RegExp(`^replaced by +${key}$`, 'm'));
  expect(old.out).not.toContain('purchase');
  const refund = await shop.run('purchase', 'refund', 'K-1');
  expect(refund.err).toMatch(/\(purchase_not_found\)[^]*license show K-1/);
  const enable = await shop.run('enable', 'K-1');
  expect(enable.err).toContain('(license_revoked)');
  expect((await shop.run('explain', 'license_revoked')).out).toMatch(/What to do: .*another key/);
  expect((await shop.run('license', 'rekey', 'K-1')).err).toContain('license_replaced');
  const again = await shop.run('license', 'rekey', key, '--new-key', 'K-2');
  expect(again.out).toMatch(/^valid +K-2/);
  expect(again.out).toContain('The old key is disabled. Send the new key to the buyer');
  expect((await shop.run('license', 'set-uses', 'K-2', 'many')).code).not.toBe(0);
});

test('without a terminal, a person is forgotten with --yes only', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  await shop.run('license', 'issue', '--product', 'ED', '--email', 'Ann@example.com', '--key', 'K-1');
  const refused = await shop.run('customer', 'forget', 'ann@example.com');
  expect([refused.code, refused.out]).toEqual([1, '']);
  expect(refused.err).toMatch(/cannot be undone\n.*customer forget EMAIL --yes.*\nNothing was changed/);
  expect(await shop.read('customer', 'forget', 'ann@example.com', '--yes')).toEqual({
    licenses: 1,
    devices: 0,
  });
  expect((await shop.run('customer', 'forget', 'ann@example.com', '--yes')).out).toBe(
    'No license has this address.\n',
  );
  expect((await shop.run('license', 'list')).out).not.toMatch(/ann/i);
});

// Its terminal is that of POSIX.
test.skipIf(isWindows)('on a terminal, the address must be typed in again', async () => {
  await using shop = await openCliShop();
  await shop.run('product', 'add', 'Editor', '--key', 'ED');
  await shop.run('license', 'issue', '--product', 'ED', '--email', 'ann@example.com', '--key', 'K-1');
  const argv = [...ownProgram, 'customer', 'forget', 'ann@example.com', '--state-dir', shop.directory];
  const answer = async (keys: string): Promise<number> => {
    await using terminal = openPseudoTerminal(argv, { columns: 100 });
    await vi.waitFor(() => expect(terminal.written()).toContain('address again'), patienceMs);
    terminal.type(keys);
    return await terminal.ended;
  };
  expect(await answer('anna@example.com\r')).toBe(1);
  expect((await shop.run('license', 'list')).out).toContain('ann@example.com');
  expect(await answer('ann@example.com\r')).toBe(0);
  expect((await shop.run('license', 'list')).out).not.toContain('ann@example.com');
});
