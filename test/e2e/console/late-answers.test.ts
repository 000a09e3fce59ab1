import { beforeAll, expect, test } from 'vitest';
import { AdminDaemon, describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

/** Holds back the answers whose method and path begin with `holds`, until `release()`. */
const holdAnswers = `(() => {
  const real = window.fetch;
  const held = [];
  window.holds = null;
  window.fetch = async (path, options) => {
    const name = options.method + ' ' + path;
    const isHeld = window.holds !== null && name.startsWith(window.holds);
    const answer = await real(path, options);
    if (isHeld) await new Promise((resolve) => held.push(resolve));
    return answer;
  };
  window.heldAnswers = () => held.length;
  window.release = () => { for (const resolve of held.splice(0)) resolve(); };
})()`;

describeInBrowser('answers that reach the console late,', (opened) => {
  let shop: AdminDaemon;
  let page: ConsolePage;

  beforeAll(async () => {
    shop = await AdminDaemon.start(opened);
    await shop.post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR' });
    await shop.post('/admin/v1/purchases', {
      product_key: 'EDITOR',
      buyer_email: 'ines@example.com',
      license_key: 'INES',
    });
    ({ page } = opened.use(await OpenConsole.of(shop)));
    await run(holdAnswers);
  });

  async function uses(): Promise<number> {
    return (await shop.read<{ license: { uses: number } }>('/admin/v1/licenses/INES')).license.uses;
  }

  async function run(script: string): Promise<void> {
    await page.page.evaluate(`${script};0`);
  }

  async function hold(begin: string): Promise<void> {
    await run(`window.holds = ${JSON.stringify(begin)}`);
  }

  async function held(): Promise<void> {
    await expect.poll(() => page.page.evaluate('window.heldAnswers()')).toBe(1);
    await run('window.holds = null');
  }

  const isDialogOpen = (): Promise<boolean> =>
    page.page.evaluate('document.querySelector("dialog[open]") !== null');

  test('an action whose dialog is closed before its answer is not done twice when the dialog is opened again', async () => {
    await page.open('licenses/INES', 'INES');
    await hold('PUT /api/v2/license/usage');
    await page.press('Record a use');
    await page.press('Record a use');
    await held();
    await page.page.keyboard.press('Escape');
    expect(await isDialogOpen()).toBe(false);
    await page.press('Record a use');
    expect(await isDialogOpen()).toBe(true);
    const isDisabled = `document.querySelector('dialog[open] button[type=submit]')?.disabled ?? null`;
    expect(await page.page.evaluate(isDisabled)).toBe(true);
    await run('window.release()');
    await expect.poll(isDialogOpen).toBe(false);
    await page.shows('1 use');
    expect(await uses()).toBe(1);
  });

  test('a secret that comes after its dialog was closed is shown', async () => {
    await page.open('accounts', 'Accounts');
    await hold('POST /admin/v1/accounts/default/rotate-key');
    await page.press(/^New API key: /);
    await page.press('New API key');
    await held();
    await page.page.keyboard.press('Escape');
    expect(await isDialogOpen()).toBe(false);
    await run('window.release()');
    await page.shows('This is the only time that the new API key is shown.');
    await page.press('Close');
    await expect.poll(isDialogOpen).toBe(false);
  });

  async function choose(name: string): Promise<void> {
    await run(`(() => {
        const input = document.querySelector('input[type=file]');
        const chosen = new DataTransfer();
        chosen.items.add(new File(['license_key,buyer_email\\nNEW,new@example.com\\n'], ${JSON.stringify(name)}));
        input.files = chosen.files;
        input.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
    await page.shows('Columns of the file');
  }

  test('a file that is being checked cannot be replaced by another one, which would be imported unchecked', async () => {
    await page.open('exchange', 'Import and export');
    await choose('first.csv');
    await hold('POST /admin/v1/licenses/import');
    await page.press('Check the file');
    await held();
    const section = `document.querySelector('input[type=file]').closest('section')`;
    const isEnabled = `[...${section}.querySelectorAll('input, select')].some((field) => !field.disabled)`;
    expect(await page.page.evaluate(isEnabled)).toBe(false);
    await run('window.release()');
    await page.shows('rejected.');
    expect(await page.page.evaluate(isEnabled)).toBe(true);
  });

  test('the name of a chosen file is quoted for a shell in the command', async () => {
    await page.open('exchange', 'Import and export');
    await choose('$(id).csv');
    await expect.poll(() => page.text()).toContain(`latchkey license import '$(id).csv'`);
  });

  test('an older answer about a list does not replace a newer one', async () => {
    await page.open('audit', 'Audit');
    await page.shows('product.add');
    await hold('GET /admin/v1/audit');
    await page.press('Read again');
    await held();
    await shop.post('/admin/v1/products', { name: 'Newest', product_key: 'NEWEST' });
    await page.press('Read again');
    await page.shows('Newest');
    await run('window.release()');
    // By then the late answer has been read, and the page shows what it shows.
    await page.page.evaluate('new Promise((resolve) => setTimeout(resolve, 300))');
    expect(await page.text()).toContain('Newest');
  });
});
