import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { openCliShop } from '../../../support/app/cli-shop.ts';
import { openReceiver } from '../support/webhooks.ts';

type Added = { webhook_id: string; secret: string };

test('an operator adds an endpoint, tests it, and sends an event again', async () => {
  await using shop = await openCliShop();
  await using receiver = await openReceiver();
  const added = await shop.run(
    'webhook',
    'add',
    receiver.url,
    '--events',
    'license.issued, purchase.refunded',
  );
  expect(added).toMatchObject({ code: 0, err: '' });
  expect(added.out).toContain('The secret is shown only this once.');
  const [, secret = ''] = /(whsec_\S+)/.exec(added.out) ?? [];
  const { webhooks } = await shop.read<{ webhooks: Added[] }>('webhook', 'list');
  const id = webhooks[0]?.webhook_id ?? '';
  expect(webhooks).toMatchObject([{ state: 'active', events: ['license.issued', 'purchase.refunded'] }]);
  const tested = await shop.run('webhook', 'test', id);
  expect([tested.code, tested.out]).toEqual([0, expect.stringMatching(/result {2,}delivered/)]);
  const [received] = receiver.received;
  expect(new Webhook(secret).verify(received?.body ?? '', received?.headers ?? {})).toMatchObject({
    type: 'webhook.test',
  });
  const at = Date.now();
  await shop.write(async ({ webhooks: table }) => {
    await table.addEvent({ type: 'license.issued', subject: 'KEY', eventId: 'event-1', at });
  });
  const replayed = await shop.run('webhook', 'replay', 'event-1');
  expect([replayed.code, replayed.err]).toEqual([0, '']);
  expect(receiver.received.at(-1)?.headers['webhook-id']).toBe('event-1');
  const deliveries = await shop.run('webhook', 'deliveries', id);
  expect(deliveries.out).toMatch(/event-1 +license\.issued +delivered +1 +204/);
  const removed = await shop.run('webhook', 'remove', id);
  expect(removed.out).toMatch(/^removed\n/);
});

test('a test and a replay that a receiver refuses end with exit code 1 and say why', async () => {
  await using shop = await openCliShop();
  await using receiver = await openReceiver();
  receiver.answer = (response) => response.writeHead(500).end();
  const { webhook_id: id } = await shop.read<Added>('webhook', 'add', receiver.url);
  const tested = await shop.run('webhook', 'test', id);
  expect([tested.code, tested.out]).toEqual([1, expect.stringContaining('answered 500')]);
});

test('an address that must not get events is refused with the setting that permits it', async () => {
  await using shop = await openCliShop();
  const { code, out, err } = await shop.run('webhook', 'add', 'https://10.0.0.1/hook');
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain('10.0.0.1 is not an address on the internet, and not in webhooks.out.allow');
});
