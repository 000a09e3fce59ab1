import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hourMs, minuteMs } from '../../../../src/domain/time.ts';
import { openReceiver, type Receiver } from '../../webhooks/support/webhooks.ts';
import { issuedKey, issuedProduct, otherKey } from '../../leases/support/issuer-harness.ts';
import { buyerEmail, BuyersShop, textOf } from '../support/shop.ts';

const webhooks = { out: { allow: ['127.0.0.0/8'] } };
const asked =
  'If a license was bought with this address, a mail with the license key arrives within a few minutes.';
const lost = 'Lost your license key?';

const opened = new AsyncDisposableStack();
let shop: BuyersShop;
let receiver: Receiver;
beforeAll(async () => {
  shop = opened.use(await new BuyersShop().open({ configuration: { webhooks } }));
  receiver = opened.use(await openReceiver());
});
afterAll(() => opened.disposeAsync());

describe('a lost license key', () => {
  test('has a form only if a system of the seller gets the event', async () => {
    expect(textOf(await shop.customer().get())).not.toContain(lost);
    await shop.admin('POST', '/webhooks', { url: receiver.url, events: ['seat.taken'] });
    expect(textOf(await shop.customer().get())).not.toContain(lost);
    await shop.admin('POST', '/webhooks', { url: receiver.url, events: ['license.recovery_requested'] });
    expect(textOf(await shop.customer().get())).toContain(lost);
  });

  test('is an event with the license keys of the address, and without the address', async () => {
    const another = 'BBBBB-BBBBB-CCCCC-DDDDD';
    const sold = { product_key: issuedProduct, license_key: another, buyer_email: 'ADA@example.com' };
    await shop.admin('POST', '/purchases', sold);
    const page = await shop.customer().post('/license/recover', { email: ` ${buyerEmail} ` });
    expect([page.status, textOf(page)]).toEqual([200, expect.stringContaining(asked)]);
    const [event] = await receiver.until(1);
    const { type, data } = JSON.parse(event?.body ?? '') as {
      type: string;
      data: { license_keys: string[] };
    };
    expect(type).toBe('license.recovery_requested');
    expect(data.license_keys.toSorted()).toEqual([issuedKey, otherKey, another]);
    expect(Object.keys(data)).toEqual(['license_keys', 'revision']);
    expect(event?.body).not.toContain('@');
  });

  test('gets the same answer, byte for byte, for an address that is unknown, asked for too often or no address', async () => {
    const answer = async (email: string): Promise<unknown[]> => {
      const { status, body } = await shop.customer().post('/license/recover', { email });
      return [status, body];
    };
    const expected = await answer(buyerEmail);
    await receiver.until(2);
    for (const email of ['eve@example.com', buyerEmail, buyerEmail.toUpperCase(), '', 'x'.repeat(9_000)])
      expect(await answer(email)).toEqual(expected);
    shop.time.advance(12 * hourMs);
    expect(await answer(buyerEmail)).toEqual(expected);
    // Of the requests in between, none has become an event.
    await receiver.until(3);
    await shop.admin('POST', '/purchases', { product_key: issuedProduct, buyer_email: 'bob@example.com' });
    expect(await answer('bob@example.com')).toEqual(expected);
    const received = await receiver.until(4);
    const keys = received.map(
      ({ body }) => (JSON.parse(body) as { data: { license_keys: string[] } }).data.license_keys,
    );
    expect(keys.map(({ length }) => length)).toEqual([3, 3, 3, 1]);
  });

  test('is found by an international address as it was typed at the purchase', async () => {
    const before = receiver.received.length;
    const sold = {
      product_key: issuedProduct,
      license_key: 'INTERNATIONAL',
      buyer_email: 'Özil@müller.example',
    };
    await shop.admin('POST', '/purchases', sold);
    await shop.customer().post('/license/recover', { email: 'Özil@müller.example'.normalize('NFD') });
    const event = (await receiver.until(before + 1)).at(-1);
    expect(JSON.parse(event?.body ?? '')).toMatchObject({ data: { license_keys: ['INTERNATIONAL'] } });
  });

  test('can be asked for five times from one network, and then once in five minutes', async () => {
    const customer = shop.customer();
    const statuses: number[] = [];
    for (let number = 0; number < 6; number += 1)
      statuses.push(
        (await customer.post('/license/recover', { email: `guess-${number}@example.com` })).status,
      );
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    shop.time.advance(5 * minuteMs);
    expect((await customer.post('/license/recover', { email: buyerEmail })).status).toBe(200);
  });

  test('cannot be asked for by everybody at the same time', async () => {
    let sent = 0;
    for (let status = 200; status === 200 && sent < 1_000; sent += 1)
      ({ status } = await shop.customer().post('/license/recover', { email: `buyer-${sent}@example.com` }));
    expect(sent).toBeGreaterThan(40);
    expect(sent).toBeLessThan(1_000);
  });
});
