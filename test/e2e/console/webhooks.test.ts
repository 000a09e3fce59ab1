import { beforeAll, expect, test } from 'vitest';
import { openReceiver, type Receiver } from '../../features/webhooks/support/webhooks.ts';
import { startHarness, type Agent } from '../../support/harness/agent-harness.ts';
import { describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

describeInBrowser('the page of webhooks', (opened) => {
  let agent: Agent;
  let receiver: Receiver;
  let page: ConsolePage;

  beforeAll(async () => {
    receiver = opened.use(await openReceiver('/hook?<b>'));
    const webhooks = { out: { allow: ['127.0.0.0/8'] } };
    const harness = opened.use(await startHarness({ licenses: ['KEY'], configuration: { webhooks } }));
    agent = await harness.startAgent();
    await agent.learn(['KEY']);
    ({ page } = opened.use(await OpenConsole.of(agent)));
  });

  test('an endpoint is added, tested and removed by keyboard alone, its deliveries are shown and replayed', async () => {
    await page.open('webhooks', 'Webhooks');
    await page.shows('No other system gets events yet.');
    await page.press('Add an endpoint');
    await page.fill('URL', receiver.url);
    await page.press('Add an endpoint');
    await page.shows('This is the only time that the secret is shown.');
    expect(await page.text()).toMatch(/whsec_[A-Za-z0-9+/]{43}=/);
    await page.press('Close');
    await page.shows('active');
    expect(await page.seriousProblems()).toEqual([]);
    await page.press(/^Test: /);
    await page.press('Test');
    await page.shows('Delivered: the endpoint answered 204');
    await page.press('Close');
    await agent.change('disable', 'KEY');
    const [, event] = await receiver.until(2);
    await page.press(/^http:/);
    await page.headed('Deliveries');
    await page.shows(event?.headers['webhook-id'] ?? 'no event');
    await page.settled();
    expect(await page.seriousProblems()).toEqual([]);
    await page.press(/^Replay: license\.disabled/);
    await page.press('Replay');
    await page.shows('Delivered: the endpoint answered 204');
    await page.press('Close');
    expect((await receiver.until(3)).at(2)?.body).toBe(event?.body);
    await page.press('All webhooks');
    await page.headed('Webhooks');
    await page.press(/^Remove: /);
    await page.press('Remove');
    await page.shows('No other system gets events yet.');
    expect(page.errors).toEqual([]);
  });
});
