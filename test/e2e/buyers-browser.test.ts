import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hourMs } from '../../src/domain/time.ts';
import { buyerEmail, BuyersShop } from '../features/buyers/support/shop.ts';
import { issuedKey, issuedProduct } from '../features/leases/support/issuer-harness.ts';
import { isBrowserInstalled, startBrowser, type Browser, type Page } from '../support/process/browser.ts';
import { ConsolePage } from '../support/process/console-page.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';

describe.skipIf(!isBrowserInstalled)(`the page for buyers in a real browser${missing}`, () => {
  const opened = new AsyncDisposableStack();
  let shop: BuyersShop;
  let browser: Browser;
  let url: string;

  beforeAll(async () => {
    const buyers = { title: 'Ada’s Editor', support_url: 'mailto:help@example.com', accent: '#0f766e' };
    const configuration = { webhooks: { out: { allow: ['127.0.0.0/8'] } } };
    shop = opened.use(await new BuyersShop().open({ buyers, configuration, terms: { seats: 9 } }));
    await shop.admin('POST', '/webhooks', { url: 'http://127.0.0.1:1/hook' });
    for (const name of ['Laptop', 'Tower', 'desk-with-a-long-name.second-floor.office.example.com'])
      await (await shop.device(name)).ask('take');
    shop.time.advance(48 * hourMs);
    await (await shop.device('Phone')).ask('take');
    browser = opened.use(await startBrowser());
    url = `${shop.daemon.addresses.public}/license`;
  });
  afterAll(() => opened.disposeAsync());

  /** Sees every page. `look` is called on each. */
  async function walk(page: Page, look: (name: string) => Promise<void>): Promise<void> {
    const request = await (await shop.device('Offline')).sign('take');
    await page.goto(url);
    await look('start');
    await page.fill('#address', 'eve@example.com');
    await page.click('[aria-labelledby=lost] button');
    await look('mail');
    await page.click('main a');
    await page.fill('#key', issuedKey);
    await page.fill('#email', 'eve@example.com');
    await page.click('button.first');
    await look('wrong');
    await page.fill('#key', issuedKey);
    await page.fill('#email', buyerEmail);
    await page.click('button.first');
    await look('license');
    await page.click('button[aria-label$=Phone]');
    await look('in use');
    await page.click('main button');
    await page.click('ul.plain li:first-child button');
    await look('question');
    await page.click('button.first');
    await look('freed');
    await page.fill('#request', request);
    await page.click('button[value=code]');
    await look('answer');
  }

  const headings = {
    'en-GB': {
      start: 'Your license',
      mail: 'Look into your mailbox',
      wrong: 'Your license',
      license: 'editor',
      'in use': 'The seat of Phone cannot be freed now',
      question: 'Free the seat of Laptop?',
      freed: 'editor',
      answer: 'The answer for your machine',
    },
    'de-DE': {
      start: 'Ihre Lizenz',
      mail: 'Sehen Sie in Ihr Postfach',
      wrong: 'Ihre Lizenz',
      license: 'editor',
      'in use': 'Der Platz von Phone kann jetzt nicht freigegeben werden',
      question: 'Platz von Tower freigeben?',
      freed: 'editor',
      answer: 'Die Antwort für Ihren Rechner',
    },
  };

  test.each(['en-GB', 'de-DE'] as const)(
    'works without scripts and fits on 320 pixels, in the language of the browser (%s)',
    async (locale) => {
      const page = await browser.newPage({ javaScriptEnabled: false, locale });
      await page.setViewportSize({ width: 320, height: 640 });
      const shown = new ConsolePage(page, { tcp: url, admin: {} });
      const seen: Record<string, string> = {};
      await walk(page, async (name) => {
        seen[name] = await page.evaluate<string>('document.querySelector("h1").innerText');
        const wide = 'Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)';
        expect([name, await page.evaluate(wide)]).toEqual([name, 320]);
        expect([name, await page.evaluate('document.cookie')]).toEqual([name, '']);
        expect([name, await page.evaluate('document.images.length')]).toEqual([name, 0]);
        expect([name, await page.evaluate('location.search')]).toEqual([name, '']);
      });
      expect(seen).toEqual(headings[locale]);
      // The policy of the page allows everything that the page has.
      expect(shown.errors).toEqual([]);
    },
  );

  test('opens a license of an international address', async () => {
    const email = 'zoë@müller.example';
    const sold = { product_key: issuedProduct, license_key: 'INTERNATIONAL', buyer_email: email };
    await shop.admin('POST', '/purchases', sold);
    const page = await browser.newPage();
    await page.goto(url);
    await page.fill('#key', 'INTERNATIONAL');
    await page.fill('#email', email);
    await page.click('button.first');
    expect(await page.evaluate('document.querySelector("h1").innerText')).toBe('editor');
  });

  test('breaks no rule of axe-core, in light and in dark', async () => {
    const page = await browser.newPage({ locale: 'de-DE' });
    await page.setViewportSize({ width: 320, height: 640 });
    const shown = new ConsolePage(page, { tcp: url, admin: {} });
    await walk(page, async (name) => {
      expect([name, await shown.seriousProblems()]).toEqual([name, []]);
    });
    expect(shown.errors).toEqual([]);
  });
});
