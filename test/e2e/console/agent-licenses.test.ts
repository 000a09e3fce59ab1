import { beforeAll, expect, test } from 'vitest';
import {
  eventually,
  productKey,
  secret,
  startHarness,
  type Agent,
  type AgentHarness,
} from '../../support/harness/agent-harness.ts';
import { every, movesCounter, refusal } from '../../support/harness/plain-upstream.ts';
import { describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

const known = ['ALPHA-1', 'BETA-2'];

describeInBrowser('licenses and coupons of an agent', (opened) => {
  let harness: AgentHarness;
  let agent: Agent;
  let page: ConsolePage;

  beforeAll(async () => {
    const configuration = { products: [{ key: productKey, name: 'Press', secret }] };
    harness = opened.use(await startHarness({ licenses: [...known, 'UNSEEN-3'], configuration }));
    harness.upstream.addCoupon({
      code: 'SPRING',
      coupon_type: 'collection',
      collection_id: 'books',
      percent_off: 10,
    });
    agent = await harness.startAgent();
    await agent.learn(known);
    ({ page } = opened.use(await OpenConsole.of(agent)));
  });

  test('the pages of licenses, devices, coupons and tokens of an agent have nothing serious for axe-core', async () => {
    await page.open('', 'Overview');
    for (const title of ['Licenses', 'Devices', 'Coupons', 'Tokens']) {
      await page.press(title);
      await page.headed(title);
      await page.settled();
      expect(await page.seriousProblems(), title).toEqual([]);
    }
    const menu = await page.page.evaluate<string>(
      `document.querySelector('nav[aria-label=Pages]').innerText`,
    );
    expect(menu).not.toMatch(/Products|Purchases|Accounts|Import/);
    expect(page.errors).toEqual([]);
  });

  test('a search finds only the licenses that the agent knows, with their freshness', async () => {
    await page.open('licenses', 'Licenses');
    await page.shows('Licenses that this machine knows: 2');
    await page.fill(searchLabel, 'pha-1');
    await page.shows('1 of 1');
    await page.shows('fresh');
    await page.shows('Press');
    await page.fill(searchLabel, 'UNSEEN');
    await page.shows('No license that this machine knows');
    await page.open('licenses/UNSEEN-3', 'UNSEEN-3');
    await page.shows('This machine does not know a license with this key.');
    expect(page.errors).toEqual([]);
  });

  test('a use that is recorded while the upstream is away waits on the page of its license, with a link to the outbox', async () => {
    harness.upstream.fault = every(refusal(503, 'away'), movesCounter);
    await page.open('licenses/ALPHA-1', 'ALPHA-1');
    await page.shows('Confirmed by the upstream');
    await page.press('Record a use');
    await page.shows('The change is sent to the upstream.');
    await page.press('Record a use');
    await page.shows('1 change has not reached the upstream');
    await page.shows('0 uses, enabled');
    await page.shows('Used: 0 → 1 use');
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('One use of ALPHA-1');
    await page.headed('One use of ALPHA-1');
    harness.upstream.fault = () => undefined;
    await eventually(async () => (await agent.status()).outbox.delivered === 1);
    await page.open('licenses/ALPHA-1', 'ALPHA-1');
    await page.shows('1 use');
    await expect.poll(() => page.text()).not.toContain('has not reached the upstream');
    expect(page.errors).toEqual([]);
  });

  test('a cart on an agent takes product keys and collections, because the agent has no catalogue', async () => {
    await page.open('coupons', 'Coupons');
    await page.press('SPRING');
    await page.headed('SPRING');
    await page.fill('Product 1', 'product');
    await page.fill('Price', '20.00');
    await page.shows('No product of the cart is in the collection of the coupon.');
    await page.fill('Its collections', 'books');
    await page.shows('20.00 − 2.00 = 18.00');
    await page.shows('latchkey coupon quote SPRING product=2000c@books');
    await page.shows('Only the redemptions on this machine are counted here.');
    expect(page.errors).toEqual([]);
  });

  test('a person issues a token of an agent, and creates a coupon at its upstream', async () => {
    await page.open('tokens', 'Tokens');
    await page.press('Issue a token');
    await page.fill('Label', 'Till');
    await page.focus(/^verify /);
    await page.page.keyboard.press('Space');
    expect(await page.text()).not.toContain('issue keys');
    await page.press('Issue a token');
    await page.shows('This is the only time that the token is shown.');
    await page.press('Close');
    await page.shows('Till');
    await page.open('coupons', 'Coupons');
    await page.press('Create a coupon');
    await page.fill('Code', 'TILL5');
    await page.fill('Discount', '5');
    await page.fill('Only for the product', 'product');
    await page.shows('latchkey coupon create --code TILL5 --type single --product product --amount-off 5.00');
    await page.page.keyboard.press('Enter');
    await page.headed('TILL5');
    await eventually(() => harness.upstream.coupons.some(({ code }) => code === 'TILL5'));
    expect(page.errors).toEqual([]);
  });
});

const searchLabel = 'Part of a license key or of an e-mail address';
