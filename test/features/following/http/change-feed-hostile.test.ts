import { afterAll, beforeAll, expect, test } from 'vitest';
import { byOther, byProduct, newId } from '../../../support/harness/keyed-authority.ts';
import { openAuthority, type FollowedAuthority } from '../support/followed-authority.ts';

let authority: FollowedAuthority;
beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

/** Nothing of this agent is ever stored. */
const agent = 'c'.repeat(32);

function newAgent(): string {
  return newId().replaceAll('-', '');
}

/** Sends bytes; returns the code of the problem, and the parameters that it names. */
async function refusalOf(path: string, payload: string): Promise<string> {
  const headers = { ...byProduct, 'content-type': 'application/json' };
  const response = await authority.server.inject({ method: 'POST', url: path, headers, payload });
  const { code, errors = [] } = response.json<{ code?: string; errors?: { parameter: string }[] }>();
  const names = errors.map(({ parameter }) => parameter);
  return [response.statusCode, code, ...names].join(' ');
}

/** Everything that a request could have changed. */
async function contents(): Promise<unknown> {
  const { reader } = authority.opened.app;
  const tenant = { accountId: 'default', productKey: null };
  const licenses = ['KEY-1', 'KEY-2', 'KEY-3'].map(async (key) => await reader.licenses.get(key));
  return [await Promise.all(licenses), await reader.followers.count({ tenant })];
}

const asked = (members: object): string => JSON.stringify({ agent, ...members });
const many = (count: number): string[] => Array.from({ length: count }, () => newId());

const wrongBodies: readonly [what: string, body: string, refusal: string][] = [
  ['nothing', '', '422 parameters_invalid agent'],
  ['null', 'null', '400 malformed_body'],
  ['a list', '[]', '400 malformed_body'],
  ['half an object', '{"agent": "', '400 malformed_body'],
  ['a member twice', `{"agent":"${agent}","wait":1,"wait":2}`, '400 duplicate_parameter'],
  ['257 KiB', asked({ more: 'x'.repeat(257 * 1024) }), '413 body_too_large'],
  ['a short agent id', asked({ agent: 'c'.repeat(31) }), '422 parameters_invalid agent'],
  ['an agent id in capitals', asked({ agent: 'C'.repeat(32) }), '422 parameters_invalid agent'],
  ['a list of agent ids', asked({ agent: [agent] }), '422 parameters_invalid agent'],
];

test.each(wrongBodies)(
  'a body with %s is one clear problem and changes nothing',
  async (_, body, refusal) => {
    const before = await contents();
    expect(await refusalOf('/sync/v1/changes', body)).toBe(refusal);
    expect(await contents()).toEqual(before);
  },
);

const invalid = '422 parameters_invalid';
const wrongQuestions: readonly [path: string, what: string, body: object, refusal: string][] = [
  ['changes', '1,001 keys', { follow: many(1_001) }, `${invalid} follow`],
  ['changes', '1,001 keys to end', { unfollow: many(1_001) }, `${invalid} unfollow`],
  ['changes', '51 watched keys', { watch: many(51) }, `${invalid} watch`],
  ['changes', 'an empty watched key', { watch: [''] }, `${invalid} watch`],
  ['changes', 'a key with NUL', { follow: ['a\0b'] }, `${invalid} follow`],
  ['changes', 'half a character', { follow: ['a\uD800'] }, `${invalid} follow`],
  ['changes', 'an empty key', { follow: [''] }, `${invalid} follow`],
  ['changes', 'a key that is null', { follow: [null] }, `${invalid} follow`],
  ['changes', 'a wait of 26 s', { wait: 26 }, `${invalid} wait`],
  ['changes', 'a negative wait', { wait: -1 }, `${invalid} wait`],
  ['changes', 'a cursor that is a number', { cursor: 7 }, `${invalid} cursor`],
  ['changes', 'a long cursor', { cursor: 'x'.repeat(16_385) }, `${invalid} cursor`],
  ['changes', 'a long epoch', { epoch: 'x'.repeat(101) }, `${invalid} epoch`],
];

test.each(wrongQuestions)('%s with %s is one clear problem', async (path, _, body, refusal) => {
  const before = await contents();
  expect(await refusalOf(`/sync/v1/${path}`, JSON.stringify({ agent, ...body }))).toBe(refusal);
  expect(await contents()).toEqual(before);
});

test.each([
  '1/99999999999999999999',
  "1/'; DROP TABLE license; --",
  '999999999999999/[1,2]',
  '1/["1:1:","9:9:","8","\0"]',
  '1/\0',
  '/',
  '',
])('the cursor %j is that of another history: the agent begins anew', async (cursor) => {
  const { epoch } = await authority.changes({ agent: newAgent() });
  const follower = newAgent();
  const told = await authority.changes({ agent: follower, epoch, cursor, follow: ['KEY-1'] });
  expect([told.reset, told.changes.length]).toEqual([true, 0]);
});

test('a license key in any letters of the world is followed and used', async () => {
  const licenseKey = 'Ключ/漢字 😀+é';
  await authority.sell(licenseKey);
  const own = newAgent();
  expect(await authority.change('usage', licenseKey)).toMatchObject({ status: 200 });
  const { changes } = await authority.changes({ agent: own, follow: [licenseKey] });
  expect(changes).toMatchObject([{ license_key: licenseKey, license: { uses: 1 } }]);
});

test('an agent is told only of keys that it follows, and of none outside its reach', async () => {
  const [own, other] = [newAgent(), newAgent()];
  const first = await authority.changes({ agent: own, follow: ['KEY-2'] });
  const foreign = await authority.changes({ agent: other, follow: ['KEY-1', 'KEY-2'] }, byOther);
  // A key of another product is told as a key that does not exist.
  expect(foreign).toMatchObject({ changes: [], absent: ['KEY-1', 'KEY-2'] });
  for (const key of ['KEY-1', 'KEY-2', 'KEY-3']) await authority.change('usage', key);
  const told = await authority.changes({ agent: own, epoch: first.epoch, cursor: first.cursor });
  expect(told.changes.map(({ license_key: key }) => key)).toEqual(['KEY-2']);
  const { epoch, cursor } = foreign;
  const later = await authority.changes({ agent: other, epoch, cursor }, byOther);
  expect(later.changes).toEqual([]);
});

test('an agent is not told that a key outside its reach has changed', async () => {
  const other = newAgent();
  const before = await authority.changes({ agent: other, follow: ['KEY-3'] }, byOther);
  expect(before).toMatchObject({ changes: [], absent: ['KEY-3'] });
  await authority.change('usage', 'KEY-3');
  const { epoch, cursor } = before;
  expect(await authority.changes({ agent: other, epoch, cursor }, byOther)).toMatchObject({
    changes: [],
    absent: [],
  });
});

test("another credential with an agent's id does nothing to the follows of its owner", async () => {
  const own = newAgent();
  const first = await authority.changes({ agent: own, follow: ['KEY-1'] });
  await authority.changes({ agent: own, unfollow: ['KEY-1'], follow: ['KEY-3'] }, byOther);
  await authority.changes({ agent: own, cursor: 'x', epoch: 'x' }, byOther);
  await authority.change('usage', 'KEY-1');
  const told = await authority.changes({ agent: own, epoch: first.epoch, cursor: first.cursor });
  expect(told).toMatchObject({ changes: [{ license_key: 'KEY-1' }] });
  expect(told.reset).toBeUndefined();
});
