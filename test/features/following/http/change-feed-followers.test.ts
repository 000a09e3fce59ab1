import { afterAll, beforeAll, expect, test } from 'vitest';
import { byOperator, byProduct, newId } from '../../../support/harness/keyed-authority.ts';
import { openAuthority, type FollowedAuthority } from '../support/followed-authority.ts';

const day = 86_400_000;

let authority: FollowedAuthority;
beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

function newAgent(): string {
  return newId().replaceAll('-', '');
}

test('an agent begins again after a request that arrived late has ended one of its follows', async () => {
  const agent = newAgent();
  const { epoch, cursor } = await authority.changes({ agent, follow: ['KEY-1', 'KEY-2'] });
  const late = { agent, epoch, cursor, unfollow: ['KEY-2'] };
  // The agent got no answer to this request, and has asked again without it.
  const told = await authority.changes({ agent, epoch, cursor });
  expect(told.reset).toBeUndefined();
  await authority.changes(late);
  const next = await authority.changes({ agent, epoch: told.epoch, cursor: told.cursor });
  expect(next).toMatchObject({ reset: true });
});

/** A token of the product PRESS that may only verify. */
async function verifyToken(): Promise<{ authorization: string }> {
  const token = { scopes: ['verify'], product_key: 'PRESS' };
  const issued = await authority.post('/admin/v1/tokens', token, byOperator);
  return { authorization: `Bearer ${issued.json<{ data: { token: string } }>().data.token}` };
}

async function rowOf(agent: string): Promise<{ followed: number; number: number } | null> {
  return await authority.opened.app.reader.followers.get(agent, 'default/PRESS');
}

async function begin(headers: Readonly<Record<string, string>>, agent = newAgent()): Promise<number> {
  return (await authority.post('/sync/v1/changes', { agent }, headers)).statusCode;
}

test('nothing is stored about followed keys that the credential does not reach, and they are told as absent', async () => {
  const agent = newAgent();
  await authority.post('/admin/v1/purchases', sale('OF-OTHER', 'OTHER'), byOperator);
  const follow = ['OF-OTHER', 'KEY-1', 'NOT-SOLD-YET'];
  const first = await authority.changes({ agent, follow });
  expect(first.absent.toSorted()).toEqual(['NOT-SOLD-YET', 'OF-OTHER']);
  expect(await rowOf(agent)).toMatchObject({ followed: 1 });
  const { epoch, cursor } = first;
  expect(await authority.changes({ agent, epoch, cursor })).toMatchObject({ changes: [], absent: [] });
  await authority.sell('NOT-SOLD-YET');
  const later = await authority.changes({ agent, epoch, cursor, follow: ['NOT-SOLD-YET'] });
  expect(later).toMatchObject({ changes: [{ license_key: 'NOT-SOLD-YET' }], absent: [] });
  expect(await rowOf(agent)).toMatchObject({ followed: 2 });
});

function sale(licenseKey: string, productKey: string): object {
  return { product_key: productKey, buyer_email: 'a@example.com', license_key: licenseKey };
}

test('a credential begins at most 1,000 followers at once and 10 more each second, and others are not held up', async () => {
  const headers = await verifyToken();
  for (let count = 0; count < 1_000; count += 1) expect(await begin(headers)).toBe(200);
  const agent = newAgent();
  const refused = await authority.post('/sync/v1/changes', { agent }, headers);
  expect([refused.statusCode, refused.json()]).toMatchObject([429, { code: 'rate_limited' }]);
  expect(refused.headers['retry-after']).toBe('1');
  expect(await rowOf(agent)).toBeNull();
  expect(await begin(byProduct)).toBe(200);
  await authority.time.advance(1_000);
  for (let count = 0; count < 10; count += 1) expect(await begin(headers, agent)).toBe(200);
  for (let count = 0; count < 9; count += 1) expect(await begin(headers)).toBe(200);
  expect(await begin(headers)).toBe(429);
  expect(await begin(headers, agent)).toBe(200);
});

test('a follower that was silent for a month is forgotten, and begins again', async () => {
  const follower = newAgent();
  const told = await authority.changes({ agent: follower, follow: ['KEY-1'] });
  const before = Date.now() + 400 * day;
  for (let removed = 10; removed === 10;) {
    const pruned = await authority.opened.app.writer.write('pruneFollowers', { before, limit: 10 });
    removed = pruned.ok ? pruned.value.removed : 0;
  }
  expect(await rowOf(follower)).toBeNull();
  const { epoch, cursor } = told;
  expect(await authority.changes({ agent: follower, epoch, cursor })).toMatchObject({ reset: true });
});
