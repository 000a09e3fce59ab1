import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  byAccount,
  byOperator,
  byOther,
  byProduct,
  keyedHeaders,
  newId,
  openKeyedAuthority,
  type KeyedAuthority,
} from '../../../support/harness/keyed-authority.ts';

const day = 86_400_000;

let authority: KeyedAuthority;
beforeAll(async () => {
  authority = await openKeyedAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

let sold = 0;

/** A license key that no other test uses. */
async function soldKey(): Promise<string> {
  const licenseKey = `SOLD-${(sold += 1)}`;
  await authority.sell(licenseKey);
  return licenseKey;
}

async function revisionOf(licenseKey: string): Promise<number> {
  return (await authority.opened.app.reader.licenses.get(licenseKey))?.revision ?? 0;
}

async function verify(licenseKey: string, headers: Readonly<Record<string, string>>) {
  const url = `/api/v2/license/verify?license_key=${licenseKey}`;
  return await authority.server.inject({ url, headers: { ...byProduct, ...headers } });
}

/** Removes the responses that are kept until before an instant. */
async function prune(removalTime: number): Promise<void> {
  const pruned = await authority.opened.app.writer.write('pruneIdempotency', { removalTime, limit: 1_000 });
  if (!pruned.ok) throw new Error(pruned.problem.detail);
}

test('a change of an agent counts once, and a repetition is answered with the license as it is then', async () => {
  const key = await soldKey();
  const id = newId();
  const before = await revisionOf(key);
  const first = await authority.change('usage', key, { id });
  expect(first).toEqual({
    status: 200,
    code: null,
    uses: 1,
    revision: `${before + 1}; applied=${before + 1}`,
  });
  await authority.change('usage', key);
  expect(await authority.change('usage', key, { id, repeat: true })).toEqual({
    ...first,
    uses: 2,
    revision: `${before + 2}; applied=${before + 1}`,
  });
});

test('a change of an agent without an effect says that it was not carried out, also when it is repeated', async () => {
  const key = await soldKey();
  const id = newId();
  const first = await authority.change('enable', key, { id });
  const revision = String(await revisionOf(key));
  expect(first).toMatchObject({ status: 200, revision });
  expect(await authority.change('enable', key, { id, repeat: true })).toEqual(first);
});

test('the answer to an agent of one product is not found by an agent of another product', async () => {
  const key = await soldKey();
  const sale = { product_key: 'OTHER', buyer_email: 'a@example.com', license_key: `${key}-OTHER` };
  await authority.post('/admin/v1/purchases', sale, byOperator);
  const id = newId();
  await authority.change('disable', key, { id });
  const other = await authority.change('disable', `${key}-OTHER`, { id, headers: byOther });
  expect(other).toMatchObject({ status: 200 });
  expect((await authority.opened.app.reader.licenses.get(`${key}-OTHER`))?.enabled).toBe(false);
});

test('the same key with another license or another change is refused and changes nothing', async () => {
  const [key, other] = [await soldKey(), await soldKey()];
  const id = newId();
  await authority.change('usage', key, { id });
  const refused = { status: 422, code: 'idempotency_key_reused' };
  expect(await authority.change('usage', other, { id })).toMatchObject(refused);
  expect(await authority.change('decrease', key, { id })).toMatchObject(refused);
  expect([await authority.uses(key), await authority.uses(other)]).toEqual([1, 0]);
});

test('an enable is refused if the license was disabled after its caller saw the license, and nothing is stored', async () => {
  const key = await soldKey();
  const seen = await revisionOf(key);
  await authority.change('disable', key);
  const id = newId();
  const refused = await authority.change('enable', key, { id, seen });
  expect(refused).toMatchObject({ status: 409, code: 'license_revoked' });
  expect((await authority.opened.app.reader.licenses.get(key))?.enabled).toBe(false);
  const now = await revisionOf(key);
  expect(await authority.change('enable', key, { id, seen: now })).toMatchObject({ status: 200 });
  // The disable is no longer the last word.
  expect(await authority.change('enable', key, { seen })).toMatchObject({ status: 200 });
});

test('an enable is refused if the license was refunded after its caller saw the license, also a disabled one', async () => {
  const key = await soldKey();
  await authority.change('disable', key);
  const seen = await revisionOf(key);
  const { reader } = authority.opened.app;
  const [sale] = await reader.purchases.list({ licenseKey: key }, { limit: 1, offset: 0 });
  const url = `/admin/v1/purchases/${sale?.purchase.purchaseId ?? ''}/refund`;
  expect((await authority.server.inject({ method: 'POST', url, headers: byOperator })).statusCode).toBe(200);
  expect(await revisionOf(key)).toBe(seen + 1);
  expect(await authority.change('enable', key, { seen })).toMatchObject({ code: 'license_revoked' });
});

test('an agent of another product is not told that a license is revoked', async () => {
  const key = await soldKey();
  await authority.change('disable', key);
  const refused = await authority.change('enable', key, { seen: 0, headers: byOther });
  expect(refused).toMatchObject({ status: 404, code: 'license_not_found' });
});

test('a change that was sent to another store, or to this store before a restore, is refused', async () => {
  const key = await soldKey();
  const epoch = (await authority.opened.app.epoch()) ?? '';
  const before = `${epoch.slice(0, 16)}${'f'.repeat(16)}`;
  for (const sentTo of ['f'.repeat(32), before]) {
    const refused = await authority.change('usage', key, { epoch: sentTo });
    expect(refused).toMatchObject({ status: 409, code: 'other_store' });
  }
  expect(await authority.uses(key)).toBe(0);
  expect(await authority.change('usage', key, { epoch })).toMatchObject({ status: 200 });
});

test('answers to agents are kept for 30 days from the last time they were asked for', async () => {
  const key = await soldKey();
  const [silent, asked] = [newId(), newId()];
  await authority.change('usage', key, { id: silent });
  await authority.change('usage', key, { id: asked });
  // Both were last asked for 29 days ago.
  for (const id of [silent, asked]) await keepUntil(id, Date.now() + day);
  expect(await authority.change('usage', key, { id: asked, repeat: true })).toMatchObject({ uses: 2 });
  await prune(Date.now() + 2 * day);
  expect(await authority.change('usage', key, { id: asked, repeat: true })).toMatchObject({ uses: 2 });
  const created = Date.now() - 29 * day;
  expect(await authority.change('usage', key, { id: silent, created, repeat: true })).toMatchObject({
    status: 409,
    code: 'too_old_to_know',
  });
  expect(await authority.uses(key)).toBe(2);
});

/** Sets until when the answer to an operation of an agent of PRESS is kept (epoch ms). */
async function keepUntil(id: string, until: number): Promise<void> {
  const [credential, name] = [tenantName(), Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')];
  await authority.opened.write(async ({ idempotency }) => {
    const stored = await idempotency.get(credential, name);
    if (stored === null) throw new Error('there is no answer');
    await idempotency.replace(credential, name, { ...stored, until });
  });
}

/** Under which name the answers to agents of PRESS are stored. */
function tenantName(): string {
  const digest = authority.opened.app.digest('default/PRESS').slice(0, 12);
  return `~${Buffer.from(digest, 'hex').toString('base64url')}`;
}

test('a change that is too old to know is refused only if an earlier attempt may have been carried out', async () => {
  const key = await soldKey();
  await authority.change('usage', key);
  const removalTime = Date.now() + 31 * day;
  await prune(removalTime);
  const horizon = removalTime - 30 * day;
  // The clock of an agent may be a day ahead.
  const created = horizon + day - 1;
  expect(await authority.change('usage', key, { created, repeat: true })).toMatchObject({
    code: 'too_old_to_know',
  });
  expect(await authority.change('usage', key, { created: created + 1, repeat: true })).toMatchObject({
    uses: 2,
  });
  expect(await authority.change('usage', key, { created })).toMatchObject({ uses: 3 });
});

test('an agent is told the revision of its change only if the id of the operation has arrived', async () => {
  const key = await soldKey();
  const headers = { ...byProduct, 'latchkey-instance': 'instance-of-the-agent' };
  const url = '/api/v2/license/usage';
  const response = await authority.server.inject({
    method: 'PUT',
    url,
    headers,
    payload: { license_key: key },
  });
  expect(response.statusCode).toBe(200);
  expect(response.headers['latchkey-revision']).toMatch(/^\d+$/);
});

test('answers to agents do not count against the limit of changes without an effect', async () => {
  const key = await soldKey();
  for (let count = 0; count < 3; count += 1) await authority.change('enable', key);
  const { idempotency } = authority.opened.app.reader;
  expect(await idempotency.unchangedCount(tenantName())).toBe(0);
});

test('only agents are told the history of the store and the revision of a license', async () => {
  const key = await soldKey();
  const { headers } = await verify(key, { 'latchkey-instance': 'an-agent' });
  expect(headers['latchkey-epoch']).toMatch(/^[0-9a-f]{32}$/);
  expect(headers['latchkey-revision']).toBe(String(await revisionOf(key)));
  const plain = await verify(key, {});
  expect(plain.headers).not.toHaveProperty('latchkey-epoch');
  expect(plain.headers).not.toHaveProperty('latchkey-revision');
  expect(plain.body).not.toContain('revision');
  const missing = await verify('NO-SUCH-KEY', { 'latchkey-instance': 'an-agent' });
  expect([missing.statusCode, missing.headers['latchkey-epoch']]).toEqual([404, headers['latchkey-epoch']]);
});

test.each(['created=', 'created=1, seen=-1', 'created=1, epoch=x', 'seen=1', 'created=1, again', ''])(
  'what an agent says about an operation as %j is one clear problem and changes nothing',
  async (said) => {
    const key = await soldKey();
    const response = await authority.server.inject({
      method: 'PUT',
      url: '/api/v2/license/usage',
      headers: { ...byProduct, ...keyedHeaders(), 'latchkey-operation': said },
      payload: { license_key: key },
    });
    expect([response.statusCode, response.json<{ code: string }>().code]).toEqual([400, 'malformed_request']);
    expect(await authority.uses(key)).toBe(0);
  },
);

test('the creation of a coupon by an agent is carried out once under its key', async () => {
  const id = newId();
  const create = async () =>
    await authority.server.inject({
      method: 'POST',
      url: '/api/v2/coupons',
      headers: { ...byAccount, ...keyedHeaders({ id }) },
      payload: { code: 'SPRING', coupon_type: 'multi', percent_off: 10 },
    });
  const first = await create();
  expect(first.statusCode).toBe(201);
  expect((await create()).json()).toEqual(first.json());
});

test('an agent whose secret was rotated is answered under its key, and a token of the product too', async () => {
  const key = await soldKey();
  const id = newId();
  await authority.change('usage', key, { id });
  const issued = await authority.post(
    '/admin/v1/tokens',
    { scopes: ['use'], product_key: 'PRESS' },
    byOperator,
  );
  const { token } = issued.json<{ data: { token: string } }>().data;
  const headers = { authorization: `Bearer ${token}` };
  expect(await authority.change('usage', key, { id, repeat: true, headers })).toMatchObject({ uses: 1 });
  const rotated = await authority.post('/admin/v1/products/PRESS/rotate-secret', {}, byOperator);
  const { secret } = rotated.json<{ data: { secret: string } }>().data;
  const renewed = { 'product-secret-key': secret };
  expect(await authority.change('usage', key, { id, repeat: true, headers: renewed })).toMatchObject({
    uses: 1,
  });
  expect(await authority.uses(key)).toBe(1);
});
