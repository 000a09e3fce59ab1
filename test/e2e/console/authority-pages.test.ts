import { beforeAll, expect, test } from 'vitest';
import { AdminDaemon, describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

const markup = '<script>document.title=1</script><b>Editor</b>';

describeInBrowser('the overview and the audit log of an authority', (opened) => {
  let shop: AdminDaemon;
  let page: ConsolePage;

  beforeAll(async () => {
    shop = await AdminDaemon.start(opened);
    ({ page } = opened.use(await OpenConsole.of(shop)));
    await page.open('audit?act=product.add', 'Audit');
    await page.shows('Nothing fits this filter.');
    await shop.post('/admin/v1/products', { name: markup });
  });

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
    await shop.post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR' });
    await shop.post('/admin/v1/purchases', {
      ...sold,
      date: new Date(Date.now() - 5 * 86_400_000).toISOString(),
    });
    const { purchase_id: id } = await shop.post('/admin/v1/purchases', sold);
    await shop.post(`/admin/v1/purchases/${String(id)}/refund`, {});
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
});
