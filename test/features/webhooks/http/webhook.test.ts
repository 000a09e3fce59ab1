import { afterAll, beforeAll, expect, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';
import { openReceiver, openSender } from '../support/webhooks.ts';
import type {
  DeliveryObject,
  ReplayObject,
  WebhookObject,
} from '../../../../src/features/webhooks/wire/webhook.ts';

let opened: TestApp;
beforeAll(async () => {
  opened = await openApp();
  await send('POST', 'products', { name: 'ONE', product_key: 'ONE' });
});
afterAll(() => opened[Symbol.asyncDispose]());

const send: TestApp['send'] = (...call) => opened.send(...call);

async function add(url: string, events?: readonly string[]): Promise<WebhookObject> {
  return await dataOf(send('POST', 'webhooks', { url, events }));
}

/** Delivers until every endpoint has every event. */
async function deliver(): Promise<void> {
  const { reader, writer } = opened.app;
  const sender = await openSender({ reader, writer });
  const ending = new AbortController();
  const running = sender.run(ending.signal);
  await expect.poll(async () => await reader.webhooks.due(Date.now() + 1_000, true)).toEqual([]);
  ending.abort();
  await running;
}

async function removeAll(): Promise<void> {
  const { webhooks } = await dataOf<{ webhooks: WebhookObject[] }>(send('GET', 'webhooks?limit=100'));
  for (const { webhook_id: id } of webhooks) await send('DELETE', `webhooks/${id}`);
}

test('an endpoint is added with a secret that is never shown again, and it is listed, shown and removed', async () => {
  await using receiver = await openReceiver();
  const added = await add(receiver.url, ['license.issued', 'purchase.refunded']);
  expect(added.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(added).toMatchObject({
    state: 'active',
    waiting: 0,
    events: ['license.issued', 'purchase.refunded'],
  });
  const { secret: _, ...shown } = added;
  expect(await dataOf(send('GET', `webhooks/${added.webhook_id}`))).toEqual(shown);
  expect(await dataOf(send('GET', 'webhooks'))).toEqual({ webhooks: [shown] });
  expect(await dataOf(send('DELETE', `webhooks/${added.webhook_id}`))).toMatchObject({ url: receiver.url });
  const gone = await send('GET', `webhooks/${added.webhook_id}`);
  expect([gone.statusCode, gone.json<{ code: string }>().code]).toEqual([404, 'webhook_not_found']);
});

test('a sale, a refund and a change of a license are events, delivered in their order; a use is none', async () => {
  await using receiver = await openReceiver();
  const { webhook_id: id } = await add(receiver.url);
  const body = { product_key: 'ONE', buyer_email: 'buyer@example.com', license_key: 'SOLD' };
  const sold = await dataOf<{ purchase_id: string }>(send('POST', 'purchases', body));
  const product = await opened.app.reader.products.get('ONE');
  expect(product).not.toBeNull();
  for (const trigger of ['usage', 'disable', 'disable', 'enable'] as const) {
    const tenant = { accountId: 'default', productKey: 'ONE' };
    await opened.app.writer.write('changeLicense', { tenant, licenseKey: 'SOLD', trigger });
  }
  await send('POST', `purchases/${sold.purchase_id}/refund`);
  await send('POST', `purchases/${sold.purchase_id}/refund`);
  await deliver();
  const events = receiver.received.map(
    ({ body: sent }) => JSON.parse(sent) as { type: string; data: object },
  );
  expect(events.map(({ type }) => type)).toEqual([
    'license.issued',
    'license.disabled',
    'license.enabled',
    'purchase.refunded',
    'license.disabled',
  ]);
  for (const { data } of events) expect(Object.keys(data)).toEqual(['license_key', 'revision']);
  expect(await dataOf(send('GET', `webhooks/${id}`))).toMatchObject({ state: 'active', waiting: 0 });
  const { deliveries } = await dataOf<{ deliveries: DeliveryObject[] }>(
    send('GET', `webhooks/${id}/deliveries?limit=2`),
  );
  expect(deliveries.map(({ type, state, attempts, status }) => [type, state, attempts, status])).toEqual([
    ['license.disabled', 'delivered', 1, 204],
    ['purchase.refunded', 'delivered', 1, 204],
  ]);
  await removeAll();
});

test('a refused request and an import are no events, and without an endpoint no event is stored', async () => {
  await using receiver = await openReceiver();
  const before = await opened.app.reader.webhooks.lastNumber();
  await send('POST', 'purchases', { product_key: 'ONE', buyer_email: 'a@example.com', license_key: 'EARLY' });
  expect(await opened.app.reader.webhooks.lastNumber()).toBe(before);
  await add(receiver.url);
  const again = { product_key: 'ONE', buyer_email: 'a@example.com', license_key: 'EARLY' };
  expect((await send('POST', 'purchases', again)).statusCode).toBe(409);
  const rows = { licenses: [{ license_key: 'IMPORTED', product_key: 'ONE', buyer_email: 'a@example.com' }] };
  expect((await send('POST', 'licenses/import', rows)).statusCode).toBe(200);
  const [endpoint] = await opened.app.reader.webhooks.all();
  expect(await opened.app.reader.webhooks.next(endpoint?.position ?? 0, null)).toBeNull();
  await removeAll();
});

test('an endpoint gets only the types of events that it was added for', async () => {
  await using all = await openReceiver();
  await using few = await openReceiver();
  await add(all.url);
  const { webhook_id: id } = await add(few.url, ['license.disabled']);
  for (const licenseKey of ['A', 'B']) {
    await send('POST', 'purchases', {
      product_key: 'ONE',
      buyer_email: 'a@example.com',
      license_key: licenseKey,
    });
  }
  expect(await dataOf(send('GET', `webhooks/${id}`))).toMatchObject({ waiting: 0 });
  const tenant = { accountId: 'default', productKey: 'ONE' };
  await opened.app.writer.write('changeLicense', { tenant, licenseKey: 'A', trigger: 'disable' });
  expect(await dataOf(send('GET', `webhooks/${id}`))).toMatchObject({ waiting: 1 });
  await deliver();
  expect(all.received).toHaveLength(3);
  expect(few.received.map(({ body }) => (JSON.parse(body) as { type: string }).type)).toEqual([
    'license.disabled',
  ]);
  await removeAll();
});

test('a test event is signed, says what came back, and does not count for the health of the endpoint', async () => {
  await using receiver = await openReceiver();
  const { webhook_id: id, secret = '' } = await add(receiver.url);
  receiver.answer = (response) => response.writeHead(500).end();
  const attempt = await dataOf(send('POST', `webhooks/${id}/test`));
  expect(attempt).toMatchObject({ webhook_id: id, delivered: false, status: 500, error: 'answered 500' });
  const [received] = receiver.received;
  const event = new Webhook(secret).verify(received?.body ?? '', received?.headers ?? {});
  expect(event).toMatchObject({ type: 'webhook.test' });
  expect(await dataOf(send('GET', `webhooks/${id}`))).toMatchObject({ state: 'active', failures: 0 });
  await removeAll();
});

test('a replay sends the same bytes under the same id, signed with the current secret, and changes no health', async () => {
  await using receiver = await openReceiver();
  const { webhook_id: id } = await add(receiver.url);
  await send('POST', 'purchases', { product_key: 'ONE', buyer_email: 'a@example.com', license_key: 'AGAIN' });
  await deliver();
  const { secret = '', old_secret_until: until } = await dataOf<WebhookObject>(
    send('POST', `webhooks/${id}/rotate`),
  );
  expect(Date.parse(until ?? '')).toBeGreaterThan(Date.now() + 23 * 3_600_000);
  const event = receiver.received[0]?.headers['webhook-id'] ?? '';
  receiver.answer = (response) => response.writeHead(500).end();
  const replayed = await dataOf<ReplayObject>(send('POST', `webhook-events/${event}/replay`));
  expect(replayed).toMatchObject({
    event_id: event,
    type: 'license.issued',
    attempts: [{ webhook_id: id, delivered: false, status: 500 }],
  });
  const [first, again] = receiver.received;
  expect([again?.body, again?.headers['webhook-id']]).toEqual([first?.body, event]);
  expect(again?.headers['webhook-signature']?.split(' ')).toHaveLength(2);
  expect(new Webhook(secret).verify(again?.body ?? '', again?.headers ?? {})).toBeDefined();
  const { deliveries } = await dataOf<{ deliveries: DeliveryObject[] }>(
    send('GET', `webhooks/${id}/deliveries`),
  );
  expect(deliveries).toMatchObject([{ event_id: event, state: 'delivered', attempts: 2, status: 500 }]);
  expect(await dataOf(send('GET', `webhooks/${id}`))).toMatchObject({ state: 'active', failures: 0 });
  const missing = await send('POST', 'webhook-events/none/replay');
  expect(missing.json<{ code: string }>().code).toBe('event_not_found');
  await removeAll();
});

test.each([
  ['ftp://example.com/', 'url_invalid'],
  ['https://user:password@example.com/', 'url_invalid'],
  ['https://example.com/#part', 'url_invalid'],
  ['not a url', 'url_invalid'],
  ['https://10.1.2.3/', 'address_refused'],
  ['http://169.254.169.254/latest/meta-data', 'address_refused'],
  ['https://[::ffff:10.0.0.1]/', 'address_refused'],
])('the endpoint %s is refused as %s', async (url, code) => {
  const answer = await send('POST', 'webhooks', { url });
  expect(answer.statusCode).toBe(422);
  expect(answer.json()).toMatchObject({ errors: [{ parameter: 'url', code }] });
});

test('a misspelt parameter and an unknown type of event are refused', async () => {
  const misspelt = await send('POST', 'webhooks', { url: 'https://10.1.2.3/', event: ['license.issued'] });
  expect(misspelt.json()).toMatchObject({ errors: [{ parameter: 'event', code: 'unknown' }] });
  const unknown = await send('POST', 'webhooks', { url: 'https://10.1.2.3/', events: ['license.sold'] });
  expect(unknown.json()).toMatchObject({ errors: [{ parameter: 'events', code: 'not_one_of' }] });
});

test('there are at most 32 endpoints', async () => {
  await using receiver = await openReceiver();
  for (let count = 0; count < 32; count += 1) await add(`${receiver.url}/${count}`);
  const answer = await send('POST', 'webhooks', { url: receiver.url });
  expect(answer.json()).toMatchObject({ errors: [{ parameter: 'url', code: 'too_many' }] });
  const page = await send('GET', 'webhooks?limit=20');
  expect(page.headers['x-total-count']).toBe('32');
  const next = /<\/admin\/v1\/([^>]+)>/.exec(String(page.headers['link']))?.[1] ?? '';
  expect((await dataOf<{ webhooks: WebhookObject[] }>(send('GET', next))).webhooks).toHaveLength(12);
  await removeAll();
});

test('only the operator may see and change endpoints', async () => {
  const rights = { scopes: ['admin'], account_id: 'default' };
  const { token } = await dataOf<{ token: string }>(send('POST', 'tokens', rights));
  const headers = { authorization: `Bearer ${token}` };
  const answer = await send('GET', 'webhooks', undefined, headers);
  expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([403, 'operator_only']);
});
