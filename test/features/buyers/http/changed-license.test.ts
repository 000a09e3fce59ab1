import { afterAll, beforeAll, expect, test } from 'vitest';
import { rekey, transfer } from '../../customers/support/seller.ts';
import { issuedKey, issuedProduct } from '../../leases/support/issuer-harness.ts';
import { openReceiver } from '../../webhooks/support/webhooks.ts';
import { BuyersShop, fieldsOf, textOf } from '../support/shop.ts';

const webhooks = { out: { allow: ['127.0.0.0/8'] } };

const opened = new AsyncDisposableStack();
let shop: BuyersShop;
const admin: BuyersShop['admin'] = async (...call) => await shop.admin(...call);
beforeAll(async () => {
  shop = opened.use(await new BuyersShop().open({ configuration: { webhooks } }));
});
afterAll(() => opened.disposeAsync());

test('a lost license key that was replaced is not mailed, and the new one is', async () => {
  await using receiver = await openReceiver();
  await admin('POST', '/webhooks', { url: receiver.url, events: ['license.recovery_requested'] });
  const bought = { product_key: issuedProduct, license_key: 'LEAKED', buyer_email: 'leo@example.com' };
  await admin('POST', '/purchases', bought);
  await rekey(admin, 'LEAKED', 'REPLACED-TOO');
  await rekey(admin, 'REPLACED-TOO', 'IN-USE');
  await shop.customer().post('/license/recover', { email: 'leo@example.com' });
  const [event] = await receiver.until(1);
  expect(JSON.parse(event?.body ?? '')).toMatchObject({ data: { license_keys: ['IN-USE'] } });
});

test('a buyer who types a license key that was replaced learns that there is a new one', async () => {
  const buyer_email = 'mia@example.com';
  const expires_at = '2990-12-31';
  await admin('POST', '/purchases', {
    product_key: issuedProduct,
    license_key: 'OLD',
    buyer_email,
    expires_at,
  });
  await rekey(admin, 'OLD', 'NEW');
  const page = await shop.customer().open('OLD', buyer_email);
  expect(textOf(page)).toContain('Status\nDisabled\nThis license has a new key.');
  expect(textOf(page)).not.toMatch(/Valid until|NEW/);
  expect(textOf(await shop.customer().open('NEW', buyer_email))).toContain(
    'Status\nValid\nValid until\n31 December 2990\n',
  );
});

test('a page that was opened before a transfer does not work after it', async () => {
  const device = await shop.device('Laptop');
  await device.ask('take');
  const former = shop.customer();
  const page = await former.open(issuedKey);
  expect(page.status).toBe(200);
  await transfer(admin, issuedKey, 'next@example.com');
  for (const form of ['/license', '/license/seat'])
    expect((await former.post(form, fieldsOf(page, form))).status).toBe(403);
  expect((await shop.customer().open(issuedKey, 'next@example.com')).status).toBe(200);
});
