import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildActivation } from '../../features/leases/support/activation-builders.ts';
import { storeActivations } from '../../features/leases/support/stored-activations.ts';
import { httpClient, type HttpClient } from '../../support/network/raw-http.ts';
import { isBrowserInstalled, startBrowser, type Browser } from '../../support/process/browser.ts';
import { ConsolePage, type ConsoleDaemon } from '../../support/process/console-page.ts';
import { startDaemonProcess } from '../../support/process/daemon-process.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';

describe.skipIf(!isBrowserInstalled)(`the day of a seller in a real browser${missing}`, () => {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  let daemon: ConsoleDaemon;
  let http: HttpClient;
  let browser: Browser;
  let page: ConsolePage;

  beforeAll(async () => {
    const listen = { tcp: '127.0.0.1:0', socket: false };
    const { tcp } = opened.use(await startDaemonProcess(directory.path, { listen }));
    const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
    daemon = { tcp, admin: { authorization: `Bearer ${token}` } };
    http = opened.use(httpClient({ tcp }));
    await post('/admin/v1/products', {
      name: 'Editor',
      product_key: 'EDITOR',
      seats: '4',
    });
    browser = opened.use(await startBrowser());
    page = new ConsolePage(await browser.newPage(), daemon);
    await page.signIn({ admin: true });
  });
  afterAll(() => opened.disposeAsync());

  async function post(path: string, json: object): Promise<Record<string, unknown>> {
    const { status, body } = await http.post(path, { headers: daemon.admin, json });
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return (body as { data: Record<string, unknown> }).data;
  }

  async function licensesOf(email: string): Promise<Record<string, unknown>[]> {
    const path = `/admin/v1/licenses?buyer_email=${encodeURIComponent(email)}`;
    const { body } = await http.get(path, { headers: daemon.admin });
    return (body as { data: { licenses: Record<string, unknown>[] } }).data.licenses;
  }

  test('a seller sells for a year, renews, adds an entitlement, replaces a leaked key, sets its uses, gives the license to another customer and forgets that customer', async () => {
    await page.open('products/EDITOR', 'Editor');
    await page.press('Change');
    await page.fill('A license is valid for', '1y');
    await page.shows('latchkey product update EDITOR --seats 4 --license-for 1y');
    await page.page.keyboard.press('Enter');
    await page.shows('A license is valid for\n1y');
    await page.open('purchases', 'Purchases');
    await page.press('Sell a license');
    await page.fill('E-mail address of the customer', 'ines@example.com');
    await page.fill('Entitlements', 'export pdf');
    await page.page.keyboard.press('Enter');
    await page.shows('Entitlements must be at most 50 words');
    await page.fill('Entitlements', 'export');
    await page.shows('--entitlement export');
    await page.fill('License key', 'LEAKED-1');
    await page.page.keyboard.press('Enter');
    await page.shows('The license key of ines@example.com:');
    storeActivations(
      join(directory.path, 'state'),
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
    expect(await page.seriousProblems()).toEqual([]);
    await page.page.keyboard.press('Enter');
    await page.shows('export, pro');
    await page.shows('Terms changed');
    expect(await licensesOf('ines@example.com')).toMatchObject([
      { entitlements: ['export', 'pro'], expires_at: renewed?.['expires_at'] },
    ]);
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
    await post('/admin/v1/products', { name: 'Viewer', product_key: 'VIEWER', expiry_grace_s: 86_400 });
    const sale = { product_key: 'VIEWER', buyer_email: 'kim@example.com' };
    const expiresAt = new Date(Date.now() - 3_600_000).toISOString();
    await post('/admin/v1/purchases', { ...sale, license_key: 'ENDED-1', expires_at: expiresAt });
    await post('/admin/v1/purchases', { ...sale, license_key: 'VALID-1', expires_at: '2090-05-03' });
    await page.open('licenses?search=kim', 'Licenses');
    await page.shows('ENDED-1');
    expect(await page.text()).toMatch(/ENDED-1[^]*in grace\s+ended 1 hour ago[^]*enabled\s+until 3 May 2090/);
    await page.open('licenses/ENDED-1', 'ENDED-1');
    await page.shows('The license has ended. In its grace, your software gets the answer: valid.');
    expect(await page.seriousProblems()).toEqual([]);
    expect(page.errors).toEqual([]);
  });
});
