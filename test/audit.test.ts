import type { FastifyInstance } from 'fastify';
import { describe, expect, test } from 'vitest';
import type { ProcessControl } from '../src/http/app.ts';
import { specification } from '../src/http/dialects.ts';
import { routesOf } from '../src/http/routes/all.ts';
import type { AuditEntryObject } from '../src/wire/access.ts';
import type { SyncControl } from '../src/service/ports.ts';
import { adminToken, openApp, serverOf, type TestApp } from './support/app/http-app.ts';
import { buildActivation } from './features/leases/support/activation-builders.ts';
import { buildFollower } from './features/following/support/follower.ts';
import { buildEndpoint } from './features/webhooks/support/endpoint.ts';
import { buildOperation } from './support/builders/operation-builders.ts';

const routes = await routesOf(specification);

const headers = { authorization: `Bearer ${adminToken}` };
const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';
const uuid = '[0-9a-f-]{36}';

/**
 * The request and the audit entry of each route, without the user. The requests depend on each other in this
 * order.
 */
const acts: Readonly<Record<string, { at?: (made: Made) => string; body?: object; record: string }>> = {
  'POST /admin/v1/accounts': { body: { name: 'Shop' }, record: `account.add | ${uuid} | Shop` },
  'POST /admin/v1/accounts/:id/rotate-key': {
    at: () => 'default',
    record: 'account.rotate_key | default | ',
  },
  'POST /admin/v1/products': {
    body: { name: 'Editor', product_key: 'P', secret: 'their-own-secret' },
    record: 'product.add | P | Editor',
  },
  'POST /admin/v1/products/:id/rotate-secret': { at: () => 'P', record: 'product.rotate_secret | P | ' },
  'POST /admin/v1/collections': {
    body: { name: 'All', product_keys: ['P'], collection_id: 'C' },
    record: 'collection.add | C | All',
  },
  'PUT /admin/v1/products/:id': {
    at: () => 'P',
    body: { name: 'Press', recurring: true, archived: false },
    record: 'product.update | P | Press, recurring, on sale',
  },
  'PUT /admin/v1/collections/:id': {
    at: () => 'C',
    body: { name: 'Each', product_keys: ['P'] },
    record: 'collection.update | C | Each: 1 product',
  },
  'PUT /admin/v1/coupons/:id': {
    at: () => '1',
    body: { coupon_type: 'multi', amount_off: 5, code: 'MAY' },
    record: 'coupon.update | 1 | MAY',
  },
  'POST /admin/v1/coupons/:id/end': { at: () => '1', record: 'coupon.end | 1 | MAY' },
  'DELETE /admin/v1/coupons/:id': { at: () => '1', record: 'coupon.delete | 1 | MAY' },
  'POST /admin/v1/purchases': {
    body: { product_key: 'P', buyer_email: 'buyer@example.com', license_key: licenseKey },
    record: `purchase.add | ${uuid} | product P`,
  },
  'POST /admin/v1/purchases/:id/refund': {
    at: ({ purchase_id: id }) => id ?? '',
    record: `purchase.refund | ${uuid} | product P`,
  },
  'PUT /admin/v1/licenses/:key': {
    at: () => licenseKey,
    body: { expires_at: '2030-01-31', entitlements: ['pro'], uses_limit: 9, seats: 2 },
    record:
      'license.update | …DDDD | product P, until 2030-01-31T23:59:59\\+00:00, at most 9 uses, pro, 2 seats',
  },
  'POST /admin/v1/licenses/:key/renew': {
    at: () => licenseKey,
    body: { for: '1y' },
    record:
      'license.renew | …DDDD | product P, until 2031-01-31T23:59:59\\+00:00, at most 9 uses, pro, 2 seats',
  },
  'POST /admin/v1/licenses/import': {
    body: { product_key: 'P', licenses: [{ license_key: 'TAKEN-OVER', buyer_email: 'buyer@example.com' }] },
    record: 'license.import | catalogue | 1 imported, 0 unchanged, 0 rejected',
  },
  'POST /admin/v1/activations/:id/end': {
    at: () => 'seat',
    record: 'activation.end | seat | product P',
  },
  'POST /admin/v1/activations/:id/block': {
    at: () => 'seat',
    record: 'activation.block | seat | product P',
  },
  'PUT /admin/v1/licenses/:key/uses': {
    at: () => 'TAKEN-OVER',
    body: { uses: 1 },
    record: 'license.set_uses | …VER | product P, 1 use',
  },
  'POST /admin/v1/licenses/:key/transfer': {
    at: () => 'TAKEN-OVER',
    body: { buyer_email: 'heir@example.com' },
    record: 'license.transfer | …VER | product P, seats kept',
  },
  'POST /admin/v1/licenses/:key/rekey': {
    at: () => 'TAKEN-OVER',
    body: { license_key: 'TAKEN-OVER-AGAIN' },
    record: 'license.rekey | …VER | product P, now …GAIN',
  },
  'POST /admin/v1/customers/forget': {
    body: { buyer_email: 'heir@example.com' },
    record: 'customer.forget | catalogue | 2 licenses, 2 devices',
  },
  'POST /admin/v1/purchases/import': {
    body: { product_key: 'P', purchases: [{ license_key: 'BOUGHT', buyer_email: 'nobody' }] },
    record: 'purchase.import | catalogue | 0 imported, 0 unchanged, 1 rejected',
  },
  'POST /admin/v1/coupons/import': {
    body: { coupons: [{ code: 'SPRING', coupon_type: 'multi', amount_off: 5 }] },
    record: 'coupon.import | default | 1 imported, 0 unchanged, 0 rejected',
  },
  'POST /admin/v1/preload': {
    body: { license_keys: ['KEY-1', 'KEY-2'] },
    record: 'license.preload | upstream | 2 keys',
  },
  'POST /admin/v1/outbox/:id/retry': {
    at: () => 'retried',
    record: 'outbox.retry | retried | usage, was dead after 3 attempts',
  },
  'POST /admin/v1/outbox/:id/drop': {
    at: () => 'dropped',
    record: 'outbox.drop | dropped | usage, was dead after 3 attempts',
  },
  'POST /admin/v1/outbox/:id/confirm': {
    at: () => 'confirmed',
    record: 'outbox.confirm | confirmed | usage, was dead after 3 attempts',
  },
  'POST /admin/v1/sync/now': { record: 'sync.now | upstream | ' },
  'POST /admin/v1/sync/pause': { record: 'sync.pause | upstream | ' },
  'POST /admin/v1/sync/resume': { record: 'sync.resume | upstream | ' },
  'POST /admin/v1/stop': { record: 'process.stop | process | ' },
  'POST /admin/v1/reload': { record: 'process.reload | process | log.level limits.rate' },
  'POST /admin/v1/webhooks': {
    body: { url: 'http://127.0.0.1:1/secret-path' },
    record: `webhook.add | ${uuid} | 127.0.0.1:1`,
  },
  'POST /admin/v1/webhooks/:id/test': {
    at: () => 'hook',
    record: 'webhook.test | hook | connection refused',
  },
  'POST /admin/v1/webhook-events/:id/replay': {
    at: () => 'event',
    record: 'webhook.replay | event | license.issued to 2 endpoints',
  },
  'POST /admin/v1/webhooks/:id/resume': { at: () => 'hook', record: 'webhook.resume | hook | 127.0.0.1:1' },
  'POST /admin/v1/webhooks/:id/rotate': {
    at: () => 'hook',
    record: 'webhook.rotate | hook | the old one until [0-9T:+-]+',
  },
  'DELETE /admin/v1/webhooks/:id': { at: () => 'hook', record: 'webhook.remove | hook | 127.0.0.1:1' },
  'DELETE /admin/v1/agents/:number': { at: () => '1', record: 'agent.forget | 1 | default/P' },
  'POST /admin/v1/tokens': {
    body: { scopes: ['verify', 'use'], product_key: 'P' },
    record: `token.issue | ${uuid} | verify use of product P`,
  },
  'POST /admin/v1/tokens/:id/rotate': {
    at: ({ token_id: id }) => id ?? '',
    record: `token.rotate | ${uuid} | `,
  },
  'DELETE /admin/v1/tokens/:id': {
    at: ({ token_id: id }) => id ?? '',
    record: `token.revoke | ${uuid} | verify use of product P`,
  },
};

/** Routes that only an agent has. */
const isOfAnAgent = (route: string): boolean => /outbox|sync|preload/.test(route);

/** The ids of the objects created so far. */
type Made = Readonly<Record<string, string>>;

const control: ProcessControl = {
  stop: () => 15_000,
  reload: async () => ({ ok: true, changed: ['log.level', 'limits.rate'], restart: [] }),
};

/** An authority with a coupon. */
async function openDesk(): Promise<TestApp> {
  const opened = await openApp();
  const terms = {
    scope: { type: 'multi' },
    discount: { type: 'percent', percentOff: 5 },
    code: 'SPRING',
  } as const;
  const none = { startAt: null, endAt: null, minimumPurchaseAmount: null, usageLimit: null, notes: null };
  await opened.write(({ coupons }) => coupons.add('default', { ...terms, ...none }));
  const url = 'http://127.0.0.1:1/secret-path';
  await opened.write(async ({ webhooks }) => {
    await webhooks.put(buildEndpoint({ endpointId: 'hook', url, failures: 1 }));
    const event = { type: 'license.issued', subject: 'KEY', eventId: 'event', at: Date.now() } as const;
    await webhooks.addEvent(event);
  });
  await opened.write(({ followers }) => followers.add(buildFollower({ productKey: 'P' })));
  const seat = { activationId: 'seat', licenseKey: 'TAKEN-OVER', productKey: 'P', deviceName: 'laptop' };
  await opened.write(({ activations }) => activations.put(buildActivation(seat)));
  return { ...opened, app: { ...opened.app, control } };
}

/** An agent with operations that wait for a person, and a sync that only writes. */
async function openAgentDesk(): Promise<TestApp> {
  const opened = await openApp({ role: 'agent' });
  const { writer } = opened.app;
  const sync: SyncControl = {
    now: (asked) => writer.write('retryNow', {}, asked),
    pause: (asked) => writer.write('pauseSync', { isPaused: true }, asked),
    resume: (asked) => writer.write('pauseSync', { isPaused: false }, asked),
    wake: () => undefined,
    preload: (command, asked) => writer.write('queuePreload', command, asked),
  };
  for (const id of ['retried', 'dropped', 'confirmed']) {
    const progress = { state: 'dead', cause: 'refused' } as const;
    const lastError = `no such key: ${licenseKey}`;
    const dead = buildOperation({
      id,
      subject: licenseKey,
      productId: 'P',
      attempts: 3,
      lastError,
      progress,
    });
    opened.agentTables().operations.add(dead);
  }
  return { ...opened, app: { ...opened.app, sync } };
}

/** Calls each route; returns the audit entries and the ids of the created objects. */
async function perform(opened: TestApp, which: (route: string) => boolean): Promise<[string, Made]> {
  const server = serverOf(opened.app);
  let made: Made = {};
  const told: string[] = [];
  for (const [route, { at, body, record }] of Object.entries(acts).filter(([each]) => which(each))) {
    const [method = '', path = ''] = route.split(' ');
    const url = path.replace(/:\w+/, at?.(made) ?? '');
    const answer = await server.inject({
      method: method as 'POST' | 'DELETE',
      url,
      headers,
      ...(body !== undefined && { payload: body }),
    });
    expect([route, answer.statusCode < 300]).toEqual([route, true]);
    made = { ...made, ...answer.json<{ data: Made }>().data };
    told.push((await opened.record()).slice(told.length).join('\n'));
    expect(told.at(-1)).toMatch(new RegExp(`^token:admin \\| ${record.replaceAll('|', '\\|')}$`));
  }
  return [told.join('\n'), made];
}

test('the table of this test has every admin route that changes something', () => {
  // test/features/leases/cli/issuer.test.ts: it needs the signed request of a device. test/features/console/http/sign-in.test.ts: they need a page.
  const elsewhere = /^\/admin\/v1\/(?:leases$|console\/)/;
  const changing = routes.filter(
    ({ method, path, readsOnly }) =>
      method !== 'GET' && readsOnly !== true && path.startsWith('/admin/') && !elsewhere.test(path),
  );
  expect(changing.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(acts).sort());
});

test('every change of an authority is an audit entry with its user, without a secret or a whole license key', async () => {
  await using opened = await openDesk();
  const [all, made] = await perform(opened, (route) => !isOfAnAgent(route));
  for (const secret of [
    licenseKey,
    adminToken,
    'their-own-secret',
    made['secret'],
    made['api_key'],
    made['token'],
  ]) {
    expect(secret).toMatch(/./);
    expect(all).not.toContain(secret);
  }
});

test('every change of an agent is an audit entry with its user, without a whole license key', async () => {
  await using opened = await openAgentDesk();
  const [all] = await perform(opened, isOfAnAgent);
  expect(all).not.toContain(licenseKey);
});

test('creating a coupon is an audit entry with its user, and repeating the request is not', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const payload = { coupon_type: 'multi', amount_off: 5, code: 'SPRING' };
  const request = { method: 'POST', url: '/api/v2/coupons', payload } as const;
  for (const key of ['k', 'k', 'other']) {
    await server.inject({ ...request, headers: { ...headers, 'idempotency-key': key } });
  }
  expect(await opened.record()).toEqual(['token:admin | coupon.create | 1 | SPRING']);
});

test('a refused request is not an audit entry', async () => {
  await using opened = await openDesk();
  const server = serverOf(opened.app);
  for (const [url, payload] of [
    ['/admin/v1/accounts', {}],
    ['/admin/v1/accounts/nobody/rotate-key', undefined],
    ['/admin/v1/purchases', { product_key: 'nothing', buyer_email: 'buyer@example.com' }],
    ['/admin/v1/outbox/nothing/drop', undefined],
  ] as const) {
    const answer = await server.inject({ method: 'POST', url, headers, ...(payload && { payload }) });
    expect(answer.statusCode).toBeGreaterThanOrEqual(400);
  }
  expect(await opened.record()).toEqual([]);
});

test('a dry run of an import is not an audit entry', async () => {
  await using opened = await openDesk();
  const server = serverOf(opened.app);
  const tried = [
    ['licenses', { license_key: 'TRIED', product_key: 'P', buyer_email: 'buyer@example.com' }],
    ['purchases', { license_key: 'TRIED', product_key: 'P', buyer_email: 'buyer@example.com' }],
    ['coupons', { code: 'TRIED', coupon_type: 'multi', amount_off: 5 }],
  ] as const;
  for (const [noun, row] of tried) {
    const url = `/admin/v1/${noun}/import?dry_run=true`;
    const answer = await server.inject({ method: 'POST', url, headers, payload: { [noun]: [row] } });
    expect([noun, answer.statusCode]).toEqual([noun, 200]);
  }
  expect(await opened.record()).toEqual([]);
});

describe('the list of audit entries', () => {
  const list = async (server: FastifyInstance, query = '') => {
    const answer = await server.inject({ url: `/admin/v1/audit?${query}`, headers });
    const listed = answer.json<{ data?: { acts: AuditEntryObject[] } }>().data?.acts ?? [];
    return { answer, listed, subjects: listed.map(({ subject }) => subject).join(' ') };
  };

  async function openRecord(): Promise<TestApp> {
    const opened = await openApp();
    const done = [
      ['2026-01-01T00:00:00Z', 'token:a', 'purchase.add', 'one'],
      ['2026-01-02T00:00:00Z', 'token:b', 'purchase.refund', 'one'],
      ['2026-01-03T00:00:00Z', 'token:a', 'purchase.add', 'two'],
      ['2026-01-03T00:00:00Z', 'token:a', 'product.add', 'P'],
    ] as const;
    await opened.write(async ({ audit }) => {
      for (const [at, actor, act, subject] of done) {
        await audit.add({ at: Date.parse(at), actor, act, subject, detail: 'd' });
      }
    });
    return opened;
  }

  test('audit entries are listed in pages, the latest first', async () => {
    await using opened = await openRecord();
    const server = serverOf(opened.app);
    const { answer, listed, subjects } = await list(server, 'limit=3');
    expect(subjects).toBe('P two one');
    expect(listed[0]).toEqual({
      id: 4,
      at: '2026-01-03T00:00:00+00:00',
      actor: 'token:a',
      act: 'product.add',
      subject: 'P',
      detail: 'd',
    });
    expect([answer.headers['x-total-count'], answer.headers['link']]).toEqual([
      '4',
      expect.stringMatching(/^<\/admin\/v1\/audit\?limit=3&cursor=[\w-]+>; rel="next"$/),
    ]);
    expect((await list(server, 'limit=3&offset=3')).listed).toMatchObject([{ id: 1 }]);
  });

  test('audit events have the name of what they are about: a customer, a product, an account, a token', async () => {
    await using opened = await openDesk();
    await perform(opened, (route) => !isOfAnAgent(route));
    const server = serverOf(opened.app);
    const payload = { scopes: ['verify'], label: 'Till' };
    await server.inject({ method: 'POST', url: '/admin/v1/tokens', headers, payload });
    const { listed } = await list(server, 'limit=100');
    const nameIn = (act: string): unknown => listed.find((each) => each.act === act)?.subject_name;
    const named = ['purchase.refund', 'product.add', 'account.add', 'token.issue', 'token.revoke'];
    expect(named.map(nameIn)).toEqual(['buyer@example.com', 'Press', 'Shop', 'Till', undefined]);
  });

  test.each([
    ['actor=token:a', 'P two one'],
    ['act=purchase.*', 'two one one'],
    ['actor=token:*&act=product.*', 'P'],
    ['actor=console:*', ''],
    ['actor=token:b', 'one'],
    ['act=purchase.add', 'two one'],
    ['act=purchase.add&actor=token:b', ''],
    ['subject=one', 'one one'],
    ['subject=one&act=purchase.refund', 'one'],
    ['subject=one&actor=token:a', 'one'],
    ['since=2026-01-02T00:00:00Z', 'P two one'],
    ['until=2026-01-02T00:00:00Z', 'one'],
    ['since=2026-01-01T00:00:01Z&until=2026-01-03T00:00:00Z', 'one'],
    ['actor=token:a&since=2026-01-02T00:00:00%2B00:00', 'P two'],
    ['subject=nothing', ''],
  ])('audit entries are filtered by %s', async (query, expected) => {
    await using opened = await openRecord();
    const { answer, listed, subjects } = await list(serverOf(opened.app), query);
    expect([subjects, answer.headers['x-total-count']]).toEqual([expected, String(listed.length)]);
  });

  test('a filter that is not a datetime is refused', async () => {
    await using opened = await openRecord();
    const { answer } = await list(serverOf(opened.app), 'since=yesterday');
    expect([answer.statusCode, answer.json()]).toMatchObject([422, { errors: [{ parameter: 'since' }] }]);
  });

  test('one audit entry is shown by its number', async () => {
    await using opened = await openRecord();
    const server = serverOf(opened.app);
    const show = (id: string) => server.inject({ url: `/admin/v1/audit/${id}`, headers });
    expect((await show('2')).json()).toMatchObject({ data: { id: 2, act: 'purchase.refund' } });
    for (const id of ['5', 'x', '-1', '9'.repeat(30)]) {
      const answer = await show(id);
      expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([404, 'act_not_found']);
    }
  });

  test('reading the audit entries writes no audit entry', async () => {
    await using opened = await openRecord();
    const before = await opened.record();
    await list(serverOf(opened.app));
    expect(await opened.record()).toEqual(before);
  });
});
