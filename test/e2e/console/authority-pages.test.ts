import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { httpClient } from '../../support/network/raw-http.ts';
import { isBrowserInstalled, startBrowser } from '../../support/process/browser.ts';
import { ConsolePage } from '../../support/process/console-page.ts';
import { startDaemonProcess } from '../../support/process/daemon-process.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';
const markup = '<script>document.title=1</script><b>Editor</b>';

describe.skipIf(!isBrowserInstalled)(
  `the overview and the audit log of an authority in a real browser${missing}`,
  () => {
    const opened = new AsyncDisposableStack();
    let page: ConsolePage;
    let post: (path: string, json: object) => Promise<Record<string, unknown>>;

    beforeAll(async () => {
      const directory = opened.use(temporaryDirectory());
      const listen = { tcp: '127.0.0.1:0', socket: false };
      const { tcp } = opened.use(await startDaemonProcess(directory.path, { listen }));
      const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
      const admin = { authorization: `Bearer ${token}` };
      const http = opened.use(httpClient({ tcp }));
      const browser = opened.use(await startBrowser());
      page = new ConsolePage(await browser.newPage(), { tcp, admin });
      await page.signIn({ admin: true });
      await page.open('audit?act=product.add', 'Audit');
      await page.shows('Nothing fits this filter.');
      post = async (path, json) => {
        const { body } = await http.post(path, { headers: admin, json });
        return (body as { data: Record<string, unknown> }).data;
      };
      await post('/admin/v1/products', { name: markup });
    });
    afterAll(() => opened.disposeAsync());

    test('an authority without an upstream and without sales has an overview, and no outbox', async () => {
      await page.open('', 'Overview');
      await page.shows('All is well. Nothing needs you.');
      await page.shows('Sales in 24 hours');
      await page.shows('0 sales');
      expect(await page.text()).not.toMatch(/Upstream|Outbox|Changes waiting/);
      expect(await page.seriousProblems()).toEqual([]);
      await page.open('outbox', 'There is no such page');
    });

    test('the overview of an authority shows the sales and refunds of the range', async () => {
      const sold = { product_key: 'EDITOR', buyer_email: 'a@example.com' };
      await post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR' });
      await post('/admin/v1/purchases', {
        ...sold,
        date: new Date(Date.now() - 5 * 86_400_000).toISOString(),
      });
      const { purchase_id: id } = await post('/admin/v1/purchases', sold);
      await post(`/admin/v1/purchases/${String(id)}/refund`, {});
      await page.open('?range=30d', 'Overview');
      for (const text of ['2 sales', '1 refund', '0 activations']) await page.shows(text);
      expect(await page.seriousProblems()).toEqual([]);
    });

    test('markup in the name of a product is shown as text in the audit log', async () => {
      await page.open('audit', 'Audit');
      await page.shows(markup);
      expect(await page.page.evaluate('document.title')).toBe('Audit – Latchkey');
      expect(await page.seriousProblems()).toEqual([]);
      expect(page.errors).toEqual([]);
    });

    test('the audit log is filtered by person and thing, and saved with its filter', async () => {
      await page.open('audit?act=purchase.*', 'Audit');
      await page.shows('latchkey audit list --act');
      await page.page.evaluate(
        `(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => { window.saved = blob.text(); return make.call(URL, blob); }; })()`,
      );
      await page.press('Download CSV');
      await expect.poll(() => page.page.evaluate('window.saved === undefined')).toBe(false);
      const saved = (await page.page.evaluate<string>('window.saved')).trim().split('\r\n');
      expect([saved[0], saved.length]).toEqual(['id,actor,act,subject,subject_name,detail,at', 4]);
      expect(saved[1]).toMatch(/^\d+,token:admin\.token,purchase\.refund,.*,a@example\.com,/);
    });

    test('a link in the audit log shows only the entries with the same act', async () => {
      await page.open('audit', 'Audit');
      await page.press('product.add');
      await page.shows('latchkey audit list --act product.add');
      await page.shows('2 of 2');
      expect(await page.page.evaluate(`document.querySelector('[aria-label=Thing]').value`)).toBe(
        'product.add',
      );
    });
  },
);
