import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { httpClient } from '../../support/network/raw-http.ts';
import { longPatienceMs } from '../../support/patience.ts';
import { isBrowserInstalled, startBrowser } from '../../support/process/browser.ts';
import { ConsolePage } from '../../support/process/console-page.ts';
import { startDaemonProcess, type DaemonProcess } from '../../support/process/daemon-process.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';
const patiently = { timeout: longPatienceMs };
const secret = 'secret-of-the-product';
const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';

/** What is wider than its place, so that one must scroll sideways to see it. */
const cutOff = `[...document.querySelectorAll('main *')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 && /auto|scroll|hidden/.test(getComputedStyle(each).overflowX))
  .filter((each) => !/absolute/.test(getComputedStyle(each).position))
  .map((each) => each.outerHTML.slice(0, 80))`;

type Running = { process: DaemonProcess; admin: Record<string, string> };

describe.skipIf(!isBrowserInstalled)(`agents of an authority in a real browser${missing}`, () => {
  const opened = new AsyncDisposableStack();
  let authority: Running;
  let page: ConsolePage;

  async function start(configuration: object): Promise<Running> {
    const directory = opened.use(temporaryDirectory());
    const listen = { tcp: '127.0.0.1:0', socket: false };
    const process = opened.use(await startDaemonProcess(directory.path, { listen, ...configuration }));
    const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
    return { process, admin: { authorization: `Bearer ${token}` } };
  }

  beforeAll(async () => {
    authority = await start({});
    const browser = opened.use(await startBrowser());
    const { process, admin } = authority;
    page = new ConsolePage(await browser.newPage(), { tcp: process.tcp, admin });
    await page.signIn({ admin: true });
  });
  afterAll(() => opened.disposeAsync());

  /** On a narrow and a wide screen, in both color schemes: nothing is hard to use, and nothing scrolls sideways. */
  async function isUsable(shown: ConsolePage): Promise<void> {
    for (const width of [320, 1024]) {
      await shown.page.setViewportSize({ width, height: 800 });
      expect(await shown.seriousProblems()).toEqual([]);
      expect(await shown.page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      expect(await shown.page.evaluate(cutOff), `at ${width}`).toEqual([]);
    }
    expect(shown.errors).toEqual([]);
  }

  test('an agent appears by itself, shows on both sides what it follows, and is forgotten by keyboard', async () => {
    await page.open('agents', 'Agents');
    await page.shows('No agent has appeared yet.');
    await isUsable(page);

    const http = opened.use(httpClient({ tcp: authority.process.tcp }));
    const { admin: headers } = authority;
    const product = { name: 'Press', product_key: 'press', secret };
    await http.post('/admin/v1/products', { headers, json: product });
    const sale = { product_key: 'press', buyer_email: 'a@example.com', license_key: licenseKey };
    await http.post('/admin/v1/purchases', { headers, json: sale });
    const agent = await start({
      upstream: { base_url: authority.process.tcp },
      products: [{ key: 'press', secret }],
    });
    const below = opened.use(httpClient({ tcp: agent.process.tcp }));
    const byProduct = { 'product-secret-key': secret };
    const follows = async (): Promise<unknown> => {
      const status = await below.get('/statusz', { headers: agent.admin });
      const { upstream } = status.body as { upstream: { follows: { followed: number }[] } };
      return upstream.follows.map(({ followed }) => followed);
    };
    await below.get(`/api/v2/license/verify?license_key=${licenseKey}`, { headers: byProduct });
    await below.put('/api/v2/license/usage', { headers: byProduct, form: { license_key: licenseKey } });
    await expect.poll(follows, patiently).toEqual([1]);

    await page.open('', 'Overview');
    await page.open('agents', 'Agents');
    await page.shows('Press');
    await page.shows('connected');
    expect(await page.text()).not.toMatch(/[0-9a-f]{32}/);
    await isUsable(page);

    const ofAgent = new ConsolePage(await opened.use(await startBrowser()).newPage(), {
      tcp: agent.process.tcp,
      admin: agent.admin,
    });
    await ofAgent.signIn({ admin: false });
    await ofAgent.open('', 'Overview');
    await ofAgent.shows('a Latchkey');
    expect(await ofAgent.text()).not.toContain('followed');
    await isUsable(ofAgent);
    await ofAgent.open('agents', 'There is no such page');

    await page.press(/^Forget: agent 1$/);
    await page.shows('begins to follow its license keys again');
    await page.press('Forget');
    const audit = async (): Promise<unknown> =>
      ((await http.get('/admin/v1/audit?act=agent.forget', { headers })).body as { data: unknown }).data;
    await expect.poll(audit, patiently).toMatchObject({ acts: [{ subject: '1', detail: 'default/press' }] });
  });
});
