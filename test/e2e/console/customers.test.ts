import { beforeAll, expect, test } from 'vitest';
import { buildActivation } from '../../features/leases/support/activation-builders.ts';
import { storeActivations } from '../../features/leases/support/stored-activations.ts';
import { AdminDaemon, describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

describeInBrowser('the day of a seller', (opened) => {
  let shop: AdminDaemon;
  let page: ConsolePage;

  beforeAll(async () => {
    shop = await AdminDaemon.start(opened);
    await shop.post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR', seats: '4' });
    ({ page } = opened.use(await OpenConsole.of(shop)));
  });

  async function licensesOf(email: string): Promise<Record<string, unknown>[]> {
    const path = `/admin/v1/licenses?buyer_email=${encodeURIComponent(email)}`;
    return (await shop.read<{ licenses: Record<string, unknown>[] }>(path)).licenses;
  }

  test('a seller sells for a year, renews, adds an entitlement, replaces a leaked key, sets its uses, gives the license to another customer and forgets that customer', async () => {
    await page.open('products/EDITOR', 'Editor');
    await page.press('Change');
    await page.fill('A license is valid for', '1y');
    await page.shows('latchkey product update EDITOR --license-for 1y');
    await page.fill('Grace after its end, in days', '7');
    await page.shows('latchkey product update EDITOR --license-for 1y --expiry-grace 7d');
    expect(await page.seriousProblems()).toEqual([]);
    await page.page.keyboard.press('Enter');
    await page.shows('A license is valid for\n1y');
    await page.shows('Answered as valid after its end for\n7 days');
    await page.open('purchases', 'Purchases');
    await page.press('Sell a license');
    await page.fill('E-mail address of the customer', 'ines@example.com');
    await page.fill('Entitlements', 'export pdf');
    await page.page.keyboard.press('Enter');
    await page.shows('Entitlements must be at most 50 words');
    await page.fill('Entitlements', 'export');
    await page.shows('--entitlement export');
    await page.fill('License key', 'LEAKED-1');
    await page.fill('Metadata', 'order 1017');
    await page.press('Sell a license');
    await page.shows('Metadata must be a JSON object of at most 4096 bytes.');
    await expect.poll(() => page.focused()).toBe('Metadata');
    await page.fill('Metadata', '{"order": 1017}');
    await page.shows(`--metadata '{"order": 1017}'`);
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Sell a license');
    await page.shows('The license key of ines@example.com:');
    storeActivations(
      shop.stateDir,
      ['iMac of Ines', 'MacBook', 'ThinkPad'].map((deviceName, index) =>
        buildActivation({
          activationId: `seat-${index}`,
          device: `device-${index}`,
          deviceName,
          licenseKey: 'LEAKED-1',
          productKey: 'EDITOR',
          expiresAt: Date.now() + 10 ** 9,
          seatUntil: Date.now() + 10 ** 9,
        }),
      ),
    );
    await page.open('licenses/LEAKED-1', 'LEAKED-1');
    await page.press('Renew');
    await page.shows('latchkey license renew LEAKED-1 --for 1y');
    expect(await page.seriousProblems()).toEqual([]);
    await page.page.keyboard.press('Enter');
    await page.shows('Renewed: until ');
    const [renewed] = await licensesOf('ines@example.com');
    const untilEnd = Date.parse(String(renewed?.['expires_at'])) - Date.now();
    expect(Math.round(untilEnd / 86_400_000)).toBeOneOf([730, 731]);
    await page.press('Change terms');
    await page.fill('Entitlements', 'export, pro');
    await page.shows("latchkey license update LEAKED-1 --entitlement 'export, pro'");
    await page.fill('Metadata', '{"order": 1018}');
    await page.shows(`--entitlement 'export, pro' --metadata '{"order": 1018}'`);
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Change terms');
    await page.shows('export, pro');
    await page.shows('Terms changed');
    await page.shows('Metadata\n{"order":1018}');
    const changed = { entitlements: ['export', 'pro'], metadata: { order: 1018 } };
    expect(await licensesOf('ines@example.com')).toMatchObject([
      { ...changed, expires_at: renewed?.['expires_at'] },
    ]);
    await page.press('Change terms');
    await page.fill('Metadata', ' ');
    await page.shows('latchkey license update LEAKED-1 --metadata none');
    await page.press('Change terms');
    await expect.poll(() => page.text()).not.toContain('Metadata');
    expect((await licensesOf('ines@example.com'))[0]).not.toHaveProperty('metadata');
    await page.shows('Seats: 3 of 4 taken');
    await page.press('Replace key');
    await page.shows('3 devices keep their seats, and need the new key.');
    await page.shows('latchkey license rekey LEAKED-1');
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Replace key');
    await page.shows('The new license key:');
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Close');
    await page.shows('The key was replaced by');
    await page.shows('Your software gets the answer: disabled.');
    expect(await page.text()).not.toMatch(/Record a use|Answered as valid/);
    const [key = ''] = (await licensesOf('ines@example.com'))
      .filter(({ enabled }) => enabled === true)
      .map(({ license_key: each }) => String(each));
    await page.press(key);
    await page.headed(key);
    await page.shows('Seats: 3 of 4 taken');
    await page.shows('Valid until');
    await page.shows('Key replaced');
    await page.press('Set uses');
    await page.fill('Uses', '7');
    await page.shows(`latchkey license set-uses ${key} 7`);
    await page.page.keyboard.press('Enter');
    await page.shows('Uses set: 0 → 7 uses');
    await page.press('Transfer');
    await page.fill('E-mail address of the new customer', 'jonas@example.com');
    await page.focus('Devices');
    await page.page.keyboard.press('End');
    await page.shows('--free-seats');
    await page.page.keyboard.press('Home');
    await page.shows(`latchkey license transfer ${key} --email jonas@example.com --config`);
    await page.focus('E-mail address of the new customer');
    await page.page.keyboard.press('Enter');
    await page.shows('Given to another customer');
    await page.shows('jonas@example.com');
    await page.press('Forget customer');
    await page.shows('This cannot be undone.');
    await page.fill('Type the e-mail address again', 'ines@example.com');
    await page.page.keyboard.press('Enter');
    await page.shows('It is not the address of this customer.');
    expect(await page.seriousProblems()).toEqual([]);
    await page.fill('Type the e-mail address again', 'jonas@example.com');
    await page.page.keyboard.press('Enter');
    await page.shows('forgotten');
    await expect.poll(() => page.text()).not.toMatch(/jonas|iMac of Ines|Forget customer/);
    await page.shows('7 uses');
    await page.shows('Seats: 3 of 4 taken');
    expect(await licensesOf('jonas@example.com')).toEqual([]);
    expect(page.errors).toEqual([]);
  });

  test('a license in its grace is shown as such, and the list says of each license when it ends', async () => {
    await shop.post('/admin/v1/products', { name: 'Viewer', product_key: 'VIEWER', expiry_grace_s: 86_400 });
    const sale = { product_key: 'VIEWER', buyer_email: 'kim@example.com' };
    const expiresAt = new Date(Date.now() - 3_600_000).toISOString();
    await shop.post('/admin/v1/purchases', { ...sale, license_key: 'ENDED-1', expires_at: expiresAt });
    await shop.post('/admin/v1/purchases', { ...sale, license_key: 'VALID-1', expires_at: '2090-05-03' });
    await page.open('licenses?search=kim', 'Licenses');
    await page.shows('ENDED-1');
    expect(await page.text()).toMatch(/ENDED-1[^]*in grace\s+ended 1 hour ago[^]*enabled\s+until 3 May 2090/);
    await page.open('licenses/ENDED-1', 'ENDED-1');
    await page.shows('The license has ended. In its grace, your software gets the answer: valid.');
    expect(await page.seriousProblems()).toEqual([]);
    expect(page.errors).toEqual([]);
  });
});
