import { beforeAll, expect, test } from 'vitest';
import { longPatienceMs } from '../../support/patience.ts';
import { AdminDaemon, describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

const patiently = { timeout: longPatienceMs };
const secret = 'secret-of-the-product';
const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';

/** What is wider than its place, so that one must scroll sideways to see it. */
const cutOff = `[...document.querySelectorAll('main *')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 && /auto|scroll|hidden/.test(getComputedStyle(each).overflowX))
  .filter((each) => !/absolute/.test(getComputedStyle(each).position))
  .map((each) => each.outerHTML.slice(0, 80))`;

describeInBrowser('agents of an authority', (opened) => {
  let authority: AdminDaemon;
  let page: ConsolePage;

  beforeAll(async () => {
    authority = await AdminDaemon.start(opened);
    ({ page } = opened.use(await OpenConsole.of(authority)));
  });

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

    await authority.post('/admin/v1/products', { name: 'Press', product_key: 'press', secret });
    const sale = { product_key: 'press', buyer_email: 'a@example.com', license_key: licenseKey };
    await authority.post('/admin/v1/purchases', sale);
    const agent = await AdminDaemon.start(opened, {
      upstream: { base_url: authority.process.tcp },
      products: [{ key: 'press', secret }],
    });
    const byProduct = { 'product-secret-key': secret };
    const follows = async (): Promise<unknown> => {
      const { upstream } = (await agent.ask('/statusz')) as {
        upstream: { follows: { followed: number }[] };
      };
      return upstream.follows.map(({ followed }) => followed);
    };
    await agent.client.get(`/api/v2/license/verify?license_key=${licenseKey}`, { headers: byProduct });
    await agent.client.put('/api/v2/license/usage', {
      headers: byProduct,
      form: { license_key: licenseKey },
    });
    await expect.poll(follows, patiently).toEqual([1]);

    await page.open('', 'Overview');
    await page.open('agents', 'Agents');
    await page.shows('Press');
    await page.shows('connected');
    expect(await page.text()).not.toMatch(/[0-9a-f]{32}/);
    await isUsable(page);

    const { page: ofAgent } = opened.use(await OpenConsole.of(agent, { admin: false }));
    await ofAgent.open('', 'Overview');
    await ofAgent.shows('a Latchkey');
    expect(await ofAgent.text()).not.toContain('followed');
    await isUsable(ofAgent);
    await ofAgent.open('agents', 'There is no such page');

    await page.press(/^Forget: agent 1$/);
    await page.shows('begins to follow its license keys again');
    await page.press('Forget');
    const audit = (): Promise<unknown> => authority.read('/admin/v1/audit?act=agent.forget');
    await expect.poll(audit, patiently).toMatchObject({ acts: [{ subject: '1', detail: 'default/press' }] });
  });
});
