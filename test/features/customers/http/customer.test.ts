import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildActivation } from '../../leases/support/activation-builders.ts';
import { eventsSince, lastEvent } from '../../webhooks/support/stored-events.ts';
import { adminToken, codeOf, openApp, type TestApp } from '../../../support/app/http-app.ts';

let opened: TestApp;
/** The admin token of another account. */
let stranger: string;

const far = Date.now() + 10 ** 10;

type Json = Record<string, unknown>;
type Answer = { status: number; code: unknown; data: Json };

async function call(
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  payload?: object,
  { token = adminToken, key = '' } = {},
): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, ...(key !== '' && { 'idempotency-key': key }) };
  const response = await opened.send(method, path, payload, headers);
  const body = response.json<{ data: Json; code?: string }>();
  return { status: response.statusCode, code: body.code, data: body.data };
}

const changesOf = async (key: string): Promise<unknown[]> =>
  ((await call('GET', `licenses/${key}/history`)).data['changes'] as { change: string }[]).map(
    ({ change }) => change,
  );

const listed = async (query: string, noun: 'licenses' | 'purchases' = 'licenses'): Promise<unknown[]> => {
  const { data } = await call('GET', `${noun}?${query}`);
  return (data[noun] as { license_key?: string; license?: { license_key: string } }[]).map(
    (each) => each.license_key ?? each.license?.license_key,
  );
};

const lastAudit = async (): Promise<string | undefined> => (await opened.record()).at(-1);

async function sell(license_key: string, more: object = {}): Promise<string> {
  const body = { product_key: 'press', buyer_email: 'ann@example.com', license_key, ...more };
  return String((await call('POST', 'purchases', body)).data['purchase_id']);
}

async function addDevices(licenseKey: string, count: number): Promise<void> {
  await opened.write(async ({ activations }) => {
    for (let number = 0; number < count; number += 1) {
      const activation = buildActivation({
        activationId: `${licenseKey}-${number}`,
        device: `device-${number}`,
        deviceName: "Ann's laptop",
        licenseKey,
        expiresAt: far,
        seatUntil: far,
        movedAt: [far - 10 ** 10],
      });
      const { answer } = activation;
      if (answer.kind === 'lease') answer.lease.license.buyerEmail = 'ann@example.com';
      await activations.put(activation);
    }
  });
}

beforeAll(async () => {
  opened = await openApp();
  await call('POST', 'products', { name: 'Press', product_key: 'press' });
  const account_id = String((await call('POST', 'accounts', { name: 'Other' })).data['account_id']);
  stranger = String((await call('POST', 'tokens', { scopes: ['admin'], account_id })).data['token']);
  await opened.app.writer.write('addWebhook', { url: 'https://example.com/hook', types: null });
});
afterAll(() => opened[Symbol.asyncDispose]());

test('a license with another key has its count, purchase, history and seats, and the old key stays disabled', async () => {
  const terms = { expires_at: '2998-12-31', entitlements: ['pro'] };
  const purchaseId = await sell('OLD-1', { uses: 6, ...terms });
  await call('PUT', '/api/v2/license/usage', { license_key: 'OLD-1' });
  await addDevices('OLD-1', 2);
  const position = await lastEvent(opened.app.reader);
  const rekeyed = await call('POST', 'licenses/OLD-1/rekey', { license_key: 'NEW-1' });
  expect(rekeyed).toMatchObject({
    status: 200,
    data: {
      license_key: 'NEW-1',
      enabled: true,
      uses: 7,
      buyer_email: 'ann@example.com',
      status: 'active',
      expires_at: '2998-12-31T23:59:59+00:00',
      entitlements: ['pro'],
    },
  });
  expect(await lastAudit()).toBe('token:admin | license.rekey | …1 | product press, now …1');
  expect(await eventsSince(opened.app.reader, position)).toEqual([
    'license.disabled OLD-1',
    'license.rekeyed OLD-1',
  ]);
  expect(await changesOf('NEW-1')).toEqual(['rekey', 'usage']);
  expect(await changesOf('OLD-1')).toEqual(['rekey']);
  expect((await call('GET', 'licenses/NEW-1')).data).toMatchObject({ activations: 2, seats_taken: 2 });
  expect((await call('GET', 'licenses/OLD-1')).data).toMatchObject({
    state: 'disabled',
    replaced_by: 'NEW-1',
    purchase: null,
    seats_taken: 0,
  });
  expect(await listed('license_key=NEW-1', 'purchases')).toEqual(['NEW-1']);
  const verify = async (key: string): Promise<Answer> =>
    await call('GET', `/api/v2/license/verify?license_key=${key}`);
  expect((await verify('NEW-1')).data).toMatchObject({ enabled: true, uses: 7 });
  const old = await verify('OLD-1');
  expect(old.data).toMatchObject({ license_key: 'OLD-1', enabled: false, uses: 7 });
  expect(JSON.stringify(old)).not.toContain('NEW-1');
  expect(await call('PUT', '/api/v2/license/enable', { license_key: 'OLD-1' })).toMatchObject({
    status: 409,
    code: 'license_revoked',
  });
  expect((await verify('OLD-1')).data).toMatchObject({ enabled: false });
  await call('PUT', '/api/v2/license/usage', { license_key: 'NEW-1' });
  expect(await changesOf('NEW-1')).toEqual(['usage', 'rekey', 'usage']);
  await call('POST', `purchases/${purchaseId}/refund`);
  expect((await verify('NEW-1')).data).toMatchObject({ enabled: false, uses: 8 });
});

test('a license with another key has the grace of its product, also if its old key does not have it yet', async () => {
  await call('POST', 'products', { name: 'Grace', product_key: 'grace' });
  await sell('OLD-G', { product_key: 'grace', expires_at: '2998-12-31' });
  await opened.write(async ({ products }) => {
    const product = await products.get('grace');
    if (product === null) throw new Error('there is no product');
    const licenseTerms = { ...product.licenseTerms, expiryGraceMs: 86_400_000 };
    await products.put({ ...product, licenseTerms });
  });
  const { data } = await call('POST', 'licenses/OLD-G/rekey', { license_key: 'NEW-G' });
  expect(data).toMatchObject({ license_key: 'NEW-G', grace_until: '2999-01-01T23:59:59+00:00' });
  expect((await call('GET', 'licenses/NEW-G')).data).toMatchObject({ license: data });
});

test('a key that was replaced cannot be changed, and its license gets a third key', async () => {
  await sell('FIRST', { expires_at: '2998-12-31' });
  await call('POST', 'licenses/FIRST/rekey', { license_key: 'SECOND' });
  for (const [method, path, body] of [
    ['POST', 'rekey', {}],
    ['POST', 'transfer', { buyer_email: 'bob@example.com' }],
    ['PUT', 'uses', { uses: 3 }],
    ['POST', 'renew', { for: '1y' }],
  ] as const) {
    expect(await call(method, `licenses/FIRST/${path}`, body)).toMatchObject({
      status: 409,
      code: 'license_replaced',
    });
  }
  const third = await call('POST', 'licenses/SECOND/rekey');
  expect(third.data['license_key']).toMatch(/^[A-Z2-9]{5}(?:-[A-Z2-9]{5}){3}$/);
  expect((await call('GET', 'licenses/FIRST')).data).toMatchObject({ replaced_by: 'SECOND' });
  expect((await call('GET', 'licenses/SECOND')).data).toMatchObject({
    replaced_by: third.data['license_key'],
  });
  expect(await changesOf(String(third.data['license_key']))).toEqual(['rekey', 'rekey']);
});

test('a license that is disabled or refunded stays so under its new key, and can be enabled there', async () => {
  const purchaseId = await sell('DISABLED');
  await call('POST', `purchases/${purchaseId}/refund`);
  const position = await lastEvent(opened.app.reader);
  const rekeyed = await call('POST', 'licenses/DISABLED/rekey', { license_key: 'DISABLED-2' });
  expect(rekeyed.data).toMatchObject({ enabled: false });
  expect(await eventsSince(opened.app.reader, position)).toEqual(['license.rekeyed DISABLED']);
  expect((await call('GET', 'licenses/DISABLED-2')).data).toMatchObject({ state: 'refunded' });
  const enabled = await call('PUT', '/api/v2/license/enable', { license_key: 'DISABLED-2' });
  expect(enabled.data).toMatchObject({ enabled: true });
});

test('a repeated request gets the same new key, and a key that is taken changes nothing', async () => {
  await sell('AGAIN');
  await sell('TAKEN');
  expect(await call('POST', 'licenses/AGAIN/rekey', { license_key: 'TAKEN' })).toMatchObject({
    status: 409,
    code: 'license_key_taken',
  });
  const first = await call('POST', 'licenses/AGAIN/rekey', {}, { key: 'once' });
  expect(first.status).toBe(200);
  expect(await call('POST', 'licenses/AGAIN/rekey', {}, { key: 'once' })).toEqual(first);
  expect(await changesOf(String(first.data['license_key']))).toEqual(['rekey']);
});

test('of two rekeys at once one is refused, and a refund at the same time disables the new key', async () => {
  const purchaseId = await sell('RACE');
  const answers = await Promise.all([
    call('POST', 'licenses/RACE/rekey', { license_key: 'RACE-2' }),
    call('POST', `purchases/${purchaseId}/refund`),
    call('POST', 'licenses/RACE/rekey', { license_key: 'RACE-3' }),
  ]);
  const codes = answers.map(({ status, code }) => code ?? status);
  expect(codes.filter((code) => code === 'license_replaced')).toHaveLength(1);
  expect(codes.filter((code) => code === 200)).toHaveLength(2);
  const key = codes[0] === 200 ? 'RACE-2' : 'RACE-3';
  expect((await call('GET', `licenses/${key}`)).data).toMatchObject({ state: 'refunded' });
  expect((await call('GET', 'licenses/RACE')).data).toMatchObject({ state: 'disabled', replaced_by: key });
});

test('a license with another buyer keeps its devices, unless their seats are freed', async () => {
  await sell('MOVED');
  await addDevices('MOVED', 2);
  const position = await lastEvent(opened.app.reader);
  const transferred = await call('POST', 'licenses/MOVED/transfer', { buyer_email: 'zoe@example.com' });
  expect(transferred.data).toMatchObject({ license_key: 'MOVED', buyer_email: 'zoe@example.com', uses: 0 });
  expect((await call('GET', 'licenses/MOVED')).data).toMatchObject({ seats_taken: 2 });
  expect(await listed('buyer_email=zoe%40example.com')).toEqual(['MOVED']);
  expect(await listed('search=zoe%40ex')).toEqual(['MOVED']);
  expect(await eventsSince(opened.app.reader, position)).toEqual(['license.transferred MOVED']);
  expect(await lastAudit()).toBe('token:admin | license.transfer | …D | product press, seats kept');
  const body = { buyer_email: 'yan@example.com', free_seats: true };
  await call('POST', 'licenses/MOVED/transfer', body);
  expect((await call('GET', 'licenses/MOVED')).data).toMatchObject({ activations: 2, seats_taken: 0 });
  expect(await eventsSince(opened.app.reader, position)).toEqual([
    'license.transferred MOVED',
    'seat.ended MOVED-0',
    'seat.ended MOVED-1',
    'license.transferred MOVED',
  ]);
  const { activations } = opened.app.reader;
  expect(JSON.stringify(await activations.ofLicense('MOVED', 9))).not.toMatch(/ann/i);
  const audits = (await opened.record()).length;
  await call('POST', 'licenses/MOVED/transfer', body);
  expect((await opened.record()).length).toBe(audits);
  expect(await changesOf('MOVED')).toEqual(['transfer', 'transfer']);
});

test('a count that is set is the base of the next use', async () => {
  await sell('COUNTED', { uses: 40 });
  const set = await call('PUT', 'licenses/COUNTED/uses', { uses: 2 });
  expect(set.data).toMatchObject({ uses: 2 });
  expect(await lastAudit()).toBe('token:admin | license.set_uses | …ED | product press, 2 uses');
  const used = await call('PUT', '/api/v2/license/usage', { license_key: 'COUNTED' });
  expect(used.data).toMatchObject({ uses: 3 });
  expect(await changesOf('COUNTED')).toEqual(['usage', 'set_uses']);
  expect(await call('PUT', 'licenses/COUNTED/uses', { uses: -1 })).toMatchObject({ status: 422 });
});

test('uses at the same time as a count that is set are all counted before or after it', async () => {
  await sell('BUSY');
  const use = async (): Promise<Answer> =>
    await call('PUT', '/api/v2/license/usage', { license_key: 'BUSY' });
  const uses = Array.from({ length: 20 }, use);
  const set = call('PUT', 'licenses/BUSY/uses', { uses: 1_000 });
  const counts = (await Promise.all(uses)).map(({ data }) => Number(data['uses']));
  await set;
  const before = counts.filter((count) => count < 1_000);
  const after = counts.filter((count) => count > 1_000);
  expect(before.toSorted((a, b) => a - b)).toEqual(before.map((_, index) => index + 1));
  expect(after.toSorted((a, b) => a - b)).toEqual(after.map((_, index) => 1_001 + index));
  expect((await call('GET', 'licenses/BUSY')).data).toMatchObject({
    license: { uses: 1_000 + after.length },
  });
});

test('nothing of a person who is forgotten is left, and every count is', async () => {
  for (const key of ['P-1', 'P-2']) await sell(key, { buyer_email: 'Paul.O@Example.com', uses: 5 });
  await sell('P-3', { buyer_email: 'other.paul.o@example.com' });
  await opened.write(({ activations }) =>
    activations.put(
      buildActivation({
        activationId: 'p-1',
        licenseKey: 'P-1',
        deviceName: 'paul-o',
        expiresAt: far,
        seatUntil: far,
      }),
    ),
  );
  const stored = { license_key: 'P-1' };
  await call('PUT', '/api/v2/license/usage', stored, { key: 'use-of-paul' });
  await call('POST', 'activations/p-1/end', undefined, { key: 'end-of-paul' });
  const position = await lastEvent(opened.app.reader);
  const forgotten = await call('POST', 'customers/forget', { buyer_email: 'paul.o@example.COM' });
  expect(forgotten).toMatchObject({ status: 200, data: { licenses: 2, devices: 1 } });
  expect(await lastAudit()).toBe('token:admin | customer.forget | catalogue | 2 licenses, 1 device');
  expect(await eventsSince(opened.app.reader, position)).toEqual([
    'license.forgotten P-1',
    'license.forgotten P-2',
  ]);
  expect((await call('GET', 'licenses/P-1')).data).toMatchObject({
    license: { buyer_email: '', uses: 6, enabled: true },
    activations: 1,
  });
  expect(await listed('search=paul.o')).toEqual(['P-3']);
  expect(await listed('buyer_email=paul.o%40example.com', 'purchases')).toEqual([]);
  const repeated = await call('PUT', '/api/v2/license/usage', stored, { key: 'use-of-paul' });
  expect(repeated.data).toMatchObject({ uses: 6, buyer_email: '' });
  const ended = await call('POST', 'activations/p-1/end', undefined, { key: 'end-of-paul' });
  expect(ended.data).toMatchObject({ activation_id: 'p-1', device_name: null });
  expect((await opened.record()).join()).not.toMatch(/paul/i);
  const again = await call('POST', 'customers/forget', { buyer_email: 'paul.o@example.com' });
  expect(again.data).toEqual({ licenses: 0, devices: 0 });
});

test('a buyer who has no license any more leaves the stored responses as well', async () => {
  await sell('SOLD-ON', { buyer_email: 'former@example.com' });
  const use = { license_key: 'SOLD-ON' };
  await call('PUT', '/api/v2/license/usage', use, { key: 'use-of-former' });
  await call('POST', 'licenses/SOLD-ON/transfer', { buyer_email: 'next@example.com' });
  const forgotten = await call('POST', 'customers/forget', { buyer_email: 'Former@example.com' });
  expect(forgotten.data).toEqual({ licenses: 0, devices: 0 });
  const repeated = await call('PUT', '/api/v2/license/usage', use, { key: 'use-of-former' });
  expect(repeated.data).toMatchObject({ uses: 1, buyer_email: '' });
});

test('a person is forgotten in each of 1,200 stored responses, and other responses stay as they are', async () => {
  await sell('MANY', { buyer_email: 'many@example.com' });
  const response = (license_key: string, buyer_email: string): object => ({
    fingerprint: 'f',
    value: { body: { data: { license_key, buyer_email } } },
    until: far,
    unchanged: false,
  });
  const numbers = Array.from({ length: 1_200 }, (_, number) => number);
  await opened.write(async ({ idempotency }) => {
    for (const number of numbers) {
      await idempotency.put(
        `many-${number % 7}`,
        `mine-${number}`,
        response('MANY', 'Many@Example.com') as never,
      );
      await idempotency.put(
        `many-${number % 7}`,
        `other-${number}`,
        response('ELSE', 'else@example.com') as never,
      );
    }
  });
  await call('POST', 'customers/forget', { buyer_email: 'many@example.com' });
  const left = async (name: string): Promise<Set<string>> => {
    const values = numbers.map(
      async (number) => await opened.app.reader.idempotency.get(`many-${number % 7}`, `${name}-${number}`),
    );
    return new Set((await Promise.all(values)).map((each) => JSON.stringify(each?.value)));
  };
  expect([...(await left('mine'))]).toEqual(['{"body":{"data":{"license_key":"MANY","buyer_email":""}}}']);
  expect([...(await left('other'))]).toEqual([
    '{"body":{"data":{"license_key":"ELSE","buyer_email":"else@example.com"}}}',
  ]);
});

test('another account changes nothing', async () => {
  await sell('OURS', { buyer_email: 'ours@example.com' });
  const theirs = { token: stranger };
  for (const [method, path, body] of [
    ['POST', 'rekey', {}],
    ['POST', 'transfer', { buyer_email: 'bob@example.com' }],
    ['PUT', 'uses', { uses: 3 }],
  ] as const) {
    expect(await call(method, `licenses/OURS/${path}`, body, theirs)).toMatchObject({
      status: 404,
      code: 'license_not_found',
    });
  }
  const forgotten = await call('POST', 'customers/forget', { buyer_email: 'ours@example.com' }, theirs);
  expect(forgotten.data).toEqual({ licenses: 0, devices: 0 });
  expect((await call('GET', 'licenses/OURS')).data).toMatchObject({
    license: { buyer_email: 'ours@example.com', uses: 0, enabled: true },
  });
});

test('an agent refuses what only its upstream can do', async () => {
  await using agent = await openApp({ role: 'agent' });
  const answer = await agent.send('POST', 'customers/forget', { buyer_email: 'a@example.com' });
  expect([answer.statusCode, codeOf(answer)]).toEqual([409, 'not_the_authority']);
});
