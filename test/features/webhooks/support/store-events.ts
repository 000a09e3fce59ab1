import { createHash, createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

/** An event as a store sends it. */
export type SentStoreEvent = {
  body: string;
  headers: Record<string, string>;
  /** What follows `?` in the URL that was given to the store. */
  query: string;
};

type About = { licenseKey?: string; email?: string; productKey?: string };

const json = { 'content-type': 'application/json' };

/** A refund as Payhip documents it (help.payhip.com, Webhooks). Only newer items have a license key. */
export function payhipRefund(apiKey: string, { licenseKey, email, productKey }: About): SentStoreEvent {
  const event = {
    id: 'ZGjVj5x4GN',
    email,
    currency: 'USD',
    price: 900,
    vat_applied: false,
    ip_address: '72.334.28.154',
    items: [
      {
        product_id: '2804256',
        product_name: 'The Adventures of Sherlock Holmes',
        product_key: productKey,
        product_permalink: `https://payhip.com/b/${productKey}`,
        quantity: '1',
        on_sale: false,
        has_variant: false,
        ...(licenseKey !== undefined && { license_key: licenseKey }),
      },
    ],
    payment_type: 'card',
    stripe_fee: 48,
    payhip_fee: 33,
    unconsented_from_emails: false,
    is_gift: false,
    amount_refunded: 900,
    date_refunded: 1703693410,
    date_created: 1703693218,
    type: 'refunded',
    signature: createHash('sha256').update(apiKey).digest('hex'),
  };
  return { body: JSON.stringify(event), headers: json, query: '' };
}

/** A refund as Gumroad pings it (gumroad.com/ping): a form without a signature. */
export function gumroadRefund(secret: string, { licenseKey, email, productKey }: About): SentStoreEvent {
  const form = new URLSearchParams({
    seller_id: 'somesellerid==',
    product_id: 'SAMPLE-PRODUCT==',
    product_name: 'Sherlock Holmes',
    permalink: productKey ?? '',
    product_permalink: `https://sampleuser.gumroad.com/l/${productKey}`,
    short_product_id: productKey ?? '',
    email: email ?? '',
    price: '900',
    currency: 'usd',
    quantity: '1',
    order_number: '524459935',
    sale_id: 'FO8TXN-dvxYabdavG97Y-Q==',
    sale_timestamp: '2023-12-27T16:06:58Z',
    'url_params[source_url]': 'https://gumroad.com',
    ip_country: 'Ireland',
    refunded: 'true',
    resource_name: 'refund',
    ...(licenseKey !== undefined && { license_key: licenseKey }),
  });
  return {
    body: form.toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    query: `secret=${encodeURIComponent(secret)}`,
  };
}

function lemonSqueezy(secret: string, name: string, data: object): SentStoreEvent {
  const body = JSON.stringify({ meta: { event_name: name, custom_data: { user: '7' } }, data });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return { body, headers: { ...json, 'x-event-name': name, 'x-signature': signature }, query: '' };
}

/** The event `license_key_updated` of Lemon Squeezy (docs.lemonsqueezy.com, The License Key Object). */
export function lemonSqueezyLicense(secret: string, { licenseKey, email }: About): SentStoreEvent {
  return lemonSqueezy(secret, 'license_key_updated', {
    type: 'license-keys',
    id: '1',
    attributes: {
      store_id: 1,
      customer_id: 1,
      order_id: 1,
      order_item_id: 1,
      product_id: 1,
      user_name: 'Luke Skywalker',
      user_email: email,
      key: licenseKey,
      key_short: `XXXX-${licenseKey?.slice(-12)}`,
      activation_limit: 5,
      instances_count: 0,
      disabled: true,
      status: 'disabled',
      status_formatted: 'Disabled',
      expires_at: null,
      created_at: '2022-11-14T11:45:39.000000Z',
      updated_at: '2022-11-14T11:45:39.000000Z',
    },
  });
}

/** The event `order_refunded` of Lemon Squeezy, which names no license key. */
export function lemonSqueezyRefund(secret: string, { email, productKey }: About): SentStoreEvent {
  return lemonSqueezy(secret, 'order_refunded', {
    type: 'orders',
    id: '1',
    attributes: {
      store_id: 1,
      customer_id: 1,
      identifier: '104e18a2-d755-4d4b-80c4-a6c1dcbe1c10',
      order_number: 1,
      user_name: 'Luke Skywalker',
      user_email: email,
      currency: 'USD',
      total: 999,
      status: 'refunded',
      refunded: true,
      refunded_at: '2021-08-11T13:54:19.000000Z',
      first_order_item: { id: 1, order_id: 1, product_id: productKey, variant_id: 1, product_name: 'Test' },
    },
  });
}

/** An event that the library of Standard Webhooks has signed. */
export function standardEvent(
  secret: string,
  data: Record<string, unknown>,
  { at, id = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W' }: { at: number; id?: string },
): SentStoreEvent {
  const body = JSON.stringify({ type: 'purchase.refunded', timestamp: new Date(at).toISOString(), data });
  return {
    body,
    headers: {
      ...json,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at / 1000)),
      'webhook-signature': new Webhook(secret).sign(id, new Date(at), body),
    },
    query: '',
  };
}
