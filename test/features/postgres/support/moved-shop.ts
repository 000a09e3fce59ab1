import { expect, vi } from 'vitest';
import type { Activation } from '../../../../src/features/leases/domain/lease.ts';
import { buildActivation, thumbprint } from '../../leases/support/activation-builders.ts';
import { patience } from '../../../support/patience.ts';

/** Calls an authority, by default with the admin token. */
export type Caller = (
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  options?: {
    body?: object | undefined;
    key?: string | undefined;
    headers?: Record<string, string> | undefined;
  },
) => Promise<{ status: number; headers: Headers; text: string }>;

type Write = {
  method: 'POST' | 'PUT' | 'DELETE';
  path: string;
  body: object | undefined;
  key: string;
  headers: Record<string, string> | undefined;
};
type Answered = { status: number; body: unknown };

/** The objects of a shop, and the responses to the writes that can be repeated. */
export interface Shop {
  /** The answers to the changes of an agent. */
  readonly delivered: readonly unknown[];
  readonly writes: readonly (Write & { answered: Answered })[];
  readonly licenseKeys: readonly string[];
  readonly lastCouponId: number;
  /** Credentials of every kind: a secret, a rotated secret, a token, an API key. */
  readonly callers: readonly Record<string, string>[];
}

const odd = String.raw`Ünïcode "quoted" \back\slash\n 'single' \N 漢字 😀`;

/** Devices of the first license, with and without every value. */
export function activationsOf({ licenseKeys: [licenseKey = ''] }: Pick<Shop, 'licenseKeys'>): Activation[] {
  const seat = { licenseKey, productKey: 'editor', uses: { recorded: 2, returned: 1 } };
  return [
    buildActivation({
      ...seat,
      activationId: 'activation 0',
      deviceName: odd,
      movedAt: [Date.UTC(2026, 0, 3)],
    }),
    buildActivation({
      ...seat,
      activationId: 'activation 1',
      device: thumbprint('device-2'),
      deviceName: null,
      state: 'blocked',
      challengedAt: [Date.UTC(2026, 0, 4)],
      copiedAt: Date.UTC(2026, 0, 5),
    }),
  ];
}

/** Fills an authority by every kind of write, each under an idempotency key. */
export async function createShop(call: Caller): Promise<Shop> {
  const writes: (Write & { answered: Answered })[] = [];
  let made = 0;
  async function write(
    method: Write['method'],
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<Record<string, unknown>> {
    const sent: Write = { method, path, body, key: `write-${(made += 1)}`, headers };
    const { status, text } = await call(method, path, sent);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    const parsed = text === '' ? {} : (JSON.parse(text) as { data?: Record<string, unknown> });
    // The server stores no response that contains a secret.
    if (!/accounts|products|tokens|webhooks/.test(path))
      writes.push({ ...sent, answered: { status, body: text === '' ? null : parsed } });
    return parsed.data ?? {};
  }
  const account = await write('POST', '/admin/v1/accounts', { name: odd });
  const apiKey = { 'service-api-key': String(account['api_key']) };
  for (const [key, secret] of [
    ['press', 'the-secret-of-press'],
    ['editor', 'the-secret-of-editor'],
  ] as const) {
    await write('POST', '/admin/v1/products', { name: `${key} ${odd}`, product_key: key, secret });
  }
  await write('POST', '/admin/v1/products', { name: 'Old', product_key: 'old' });
  await write('PUT', '/admin/v1/products/old', {
    name: 'Old',
    recurring: false,
    archived: true,
    seats: 3,
    lease_hold_s: 0,
    lease_email: true,
  });
  const rotated = await write('POST', '/admin/v1/products/editor/rotate-secret', { keep_old_s: 86_400 });
  await write('POST', '/admin/v1/collections', {
    name: odd,
    product_keys: ['press', 'editor'],
    collection_id: 'both',
  });
  // Nothing listens there: each delivery fails, and is listed.
  const endpoint = await write('POST', '/admin/v1/webhooks', { url: 'http://127.0.0.1:9/events' });
  const licenseKeys: string[] = [];
  for (let index = 0; index < 40; index += 1) {
    const sold = await write('POST', '/admin/v1/purchases', {
      product_key: index % 3 === 0 ? 'editor' : 'press',
      buyer_email: `Buyer${index % 7}@example.com`,
      uses: index % 5,
    });
    const { license_key: licenseKey } = sold['license'] as Record<string, string>;
    licenseKeys.push(licenseKey ?? '');
    const change = { license_key: licenseKey };
    for (let use = 0; use < index % 4; use += 1) await write('PUT', '/api/v2/license/usage', change);
    if (index % 6 === 1) await write('PUT', '/api/v2/license/disable', change);
    if (index % 12 === 1) await write('PUT', '/api/v2/license/enable', change);
    if (index % 9 === 2) await write('POST', `/admin/v1/purchases/${String(sold['purchase_id'])}/refund`);
  }
  let lastCouponId = 0;
  for (const [code, terms] of Object.entries({
    SPRING: { coupon_type: 'multi', percent_off: 12.5, notes: odd },
    PRESS: { coupon_type: 'single', product_key: 'press', amount_off: 250, usage_limit: 3 },
    BOTH: {
      coupon_type: 'collection',
      collection_id: 'both',
      percent_off: 33,
      end_date: '2090-01-01T00:00:00Z',
    },
    GONE: { coupon_type: 'multi', amount_off: 1 },
  })) {
    lastCouponId = Number((await write('POST', '/api/v2/coupons', { code, ...terms }))['id']);
  }
  await write('DELETE', `/admin/v1/coupons/${lastCouponId}`);
  for (const order of ['A-1', 'A-2', 'A-3', 'A-4']) {
    const cart = { code: 'PRESS', items: [{ product_key: 'press', amount: 1999 }] };
    if (order !== 'A-4') await write('POST', '/agent/v1/redemptions', { order, ...cart });
    else await write('POST', '/agent/v1/redemptions', { order, ...cart, code: 'SPRING' });
  }
  await write('DELETE', '/agent/v1/redemptions/A-2');
  const deliveries = `/admin/v1/webhooks/${String(endpoint['webhook_id'])}/deliveries`;
  await vi.waitFor(async () => {
    const { text } = await call('GET', deliveries, {});
    expect((JSON.parse(text) as { data: { deliveries: unknown[] } }).data.deliveries).not.toEqual([]);
  }, patience);
  const delivered = await deliver(call, licenseKeys);
  const token = await write('POST', '/admin/v1/tokens', { scopes: ['verify', 'use'], label: odd });
  await write('POST', '/admin/v1/accounts', { name: 'Third' });
  return {
    writes,
    delivered,
    licenseKeys,
    lastCouponId,
    callers: [
      { 'product-secret-key': 'the-secret-of-press' },
      { 'product-secret-key': 'the-secret-of-editor' },
      { 'product-secret-key': String(rotated['secret']) },
      { authorization: `Bearer ${String(token['token'])}` },
      apiKey,
    ],
  };
}

/** Delivers a use of each license as an agent of the product `press` does, which follows the keys; returns the answers. */
export async function deliver(call: Caller, licenseKeys: readonly string[]): Promise<readonly unknown[]> {
  const secret = { 'product-secret-key': 'the-secret-of-press' };
  const follows = { agent: 'a'.repeat(32), follow: licenseKeys };
  await call('POST', '/sync/v1/changes', { body: follows, headers: secret });
  const answers = [];
  for (const [index, license_key] of licenseKeys.entries()) {
    const operation = { 'latchkey-operation': 'created=1771759440000, repeat', 'latchkey-instance': 'agent' };
    const { headers, text } = await call('PUT', '/api/v2/license/usage', {
      body: { license_key },
      key: `019c8443-0000-7000-8000-${String(index).padStart(12, '0')}`,
      headers: { ...secret, ...operation },
    });
    const { data, code } = JSON.parse(text) as { data?: object; code?: string };
    answers.push([headers.get('latchkey-revision'), data ?? code]);
  }
  return answers;
}

/** The responses of an authority to every read of a shop, by request. */
export async function readEverything(call: Caller, shop: Shop): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  async function ask(path: string, headers?: Record<string, string>): Promise<unknown> {
    const { status, headers: said, text } = await call('GET', path, { headers });
    const body: unknown = said.get('content-type')?.includes('json') === true ? JSON.parse(text) : text;
    answers[`${path} ${JSON.stringify(headers)}`] = {
      status,
      body: withoutProcess(body),
      instance: said.get('latchkey-instance'),
    };
    return body;
  }
  for (const path of [
    '/admin/v1/accounts',
    '/admin/v1/products',
    '/admin/v1/products?archived=true',
    '/admin/v1/collections',
    '/admin/v1/collections/both',
    '/admin/v1/licenses?limit=100',
    '/admin/v1/licenses?enabled=false',
    '/admin/v1/licenses?buyer_email=BUYER3%40example.com',
    '/admin/v1/licenses?search=b',
    '/admin/v1/licenses/export',
    '/admin/v1/purchases?limit=100',
    '/admin/v1/purchases?refunded=true',
    '/admin/v1/purchases/export',
    '/admin/v1/coupons/export',
    '/admin/v1/tokens',
    '/admin/v1/audit?limit=100',
    '/admin/v1/audit?act=addProduct',
    '/api/v2/coupons',
    '/agent/v1/coupons',
    '/agent/v1/redemptions/A-1',
    '/agent/v1/redemptions/A-2',
    '/agent/v1/coupons/2',
  ]) {
    await ask(path);
  }
  for (const licenseKey of shop.licenseKeys) {
    await ask(`/admin/v1/licenses/${licenseKey}`);
    await ask(`/admin/v1/licenses/${licenseKey}/history`);
    for (const headers of shop.callers)
      await ask(`/api/v2/license/verify?license_key=${licenseKey}`, headers);
  }
  for (const headers of shop.callers) await ask('/api/v2/coupons', headers);
  return answers;
}

/** Repeats every write under its idempotency key. */
export async function repeatWrites(call: Caller, shop: Shop): Promise<Answered[]> {
  const answers: Answered[] = [];
  for (const { method, path, ...options } of shop.writes) {
    const { status, text } = await call(method, path, options);
    answers.push({ status, body: text === '' ? null : JSON.parse(text) });
  }
  return answers;
}

type ShownToken = { token_id: string; last_used_at: unknown };

/** Removes values that differ by request or process: ids, tokens from files, and times of last use. */
function withoutProcess(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { request_id: _, ...rest } = body as Record<string, unknown>;
  const data = rest['data'] as { tokens?: ShownToken[] } | undefined;
  if (data?.tokens === undefined) return rest;
  const tokens = data.tokens.filter(({ token_id: id }) => !id.startsWith('admin.token'));
  return { ...rest, data: { ...data, tokens: tokens.map((token) => ({ ...token, last_used_at: null })) } };
}
