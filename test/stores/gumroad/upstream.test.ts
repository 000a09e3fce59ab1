import { expect, test } from 'vitest';
import type { GumroadStore } from '../../../src/features/sandbox/stores/gumroad.ts';
import type { UpstreamChange } from '../../../src/service/ports.ts';
import { GumroadClient } from '../../../src/stores/gumroad/upstream.ts';
import { texts } from '../../../src/stores/gumroad/wire.ts';
import { never } from '../../support/harness/upstream-harness.ts';
import { accessToken, keys, openGumroad, productId } from '../../support/stores/gumroad.ts';
import { type ClientScene, openClient, testNoVerdicts } from '../../support/stores/store-client.ts';

type Scene = ClientScene<GumroadStore, GumroadClient>;

async function scene(token: string | null = accessToken): Promise<Scene> {
  return openClient(await openGumroad(), GumroadClient, { productKey: productId, accessToken: token });
}

function changeOf(kind: UpstreamChange['kind'], licenseKey: string = keys.good): UpstreamChange {
  return { productId: 'p1', licenseKey, kind, requestId: 'request-1' };
}

test('license keys are listed ten sales at a time, from the newest on, with a token that may view sales', async () => {
  await using it = await scene();
  const newest = Array.from({ length: 12 }, (_, n) =>
    `${n}`.padStart(8, '0').concat('-AAAAAAAA-11111111-22222222'),
  );
  for (const licenseKey of newest) it.store.sell({ licenseKey });
  it.store.sell({ licenseKey: 'ignored', purchase: { license_key: undefined } });
  const pages: string[][] = [];
  let after: string | null = null;
  do {
    const outcome = await it.client.listKeys('p1', after, never());
    if (outcome.outcome !== 'applied') throw new Error(outcome.detail);
    pages.push([...outcome.value.licenseKeys]);
    after = outcome.value.next;
  } while (after !== null && pages.length < 9);
  expect(pages.map(({ length }) => length)).toEqual([9, 10]);
  expect(pages.flat()).toEqual([...newest.toReversed(), ...Object.values(keys).slice(0, -1).toReversed()]);
  expect(it.store.calls[1]).toMatchObject({
    name: 'sales',
    parameters: { product_id: productId },
    headers: { authorization: `Bearer ${accessToken}` },
  });

  it.store.scopes = new Set(['edit_products']);
  expect(await it.client.listKeys('p1', null, never())).toMatchObject({
    outcome: 'not_applied',
    reason: 'rejected',
    status: 403,
  });
  await using without = await scene(null);
  expect(await without.client.listKeys('p1', null, never())).toMatchObject({
    reason: 'rejected',
    detail: 'upstream.access_token is not configured',
  });
  expect(without.store.calls).toEqual([]);
});

test('a read counts nothing, and needs no credential', async () => {
  await using it = await scene(null);
  expect(await it.client.verify('p1', keys.good, never())).toMatchObject({
    outcome: 'applied',
    value: { licenseKey: keys.good, uses: 3, enabled: true },
  });
  expect(it.store.calls).toMatchObject([
    {
      name: 'verify',
      status: 200,
      counted: 0,
      parameters: { product_id: productId, license_key: keys.good, increment_uses_count: 'false' },
      headers: { 'latchkey-instance': 'me', 'user-agent': 'latchkey/test' },
    },
  ]);
  expect(it.store.calls[0]?.headers.authorization).toBeUndefined();
});

test('a use is a verify that counts, under the id of the request of its caller', async () => {
  await using it = await scene(null);
  expect(await it.client.change(changeOf('usage'), never())).toMatchObject({
    outcome: 'applied',
    value: { uses: 4 },
  });
  expect(it.store.calls[0]).toMatchObject({ counted: 1, headers: { 'x-request-id': 'request-1' } });
});

test('changes by the seller carry the access token, and their responses show what they show', async () => {
  await using it = await scene();
  const disabled = await it.client.change(changeOf('disable'), never());
  expect(disabled).toMatchObject({ outcome: 'applied', value: { enabled: false, uses: 3 } });
  const decreased = await it.client.change(changeOf('decrease'), never());
  expect(decreased).toMatchObject({ outcome: 'applied', shows: 'uses', value: { uses: 2 } });
  expect(await it.client.verify('p1', keys.good, never())).toMatchObject({
    outcome: 'applied',
    shows: 'enabled',
    value: { enabled: false, extra: { success: false, message: texts.disabled } },
  });
  expect(await it.client.change(changeOf('enable'), never())).toMatchObject({ value: { enabled: true } });
  for (const { name, headers } of it.store.calls)
    expect(headers.authorization).toBe(name === 'verify' ? undefined : `Bearer ${accessToken}`);
});

test.each([
  [null, 'upstream.access_token is not configured'],
  ['wrong', 'HTTP 403'],
])('with the token %s a change waits, and reads go on', async (token, detail) => {
  await using it = await scene(token);
  const outcome = await it.client.change(changeOf('disable'), never());
  expect(outcome).toMatchObject({ reason: 'rejected', detail: expect.stringContaining(detail) as string });
  expect(await it.client.verify('p1', keys.good, never())).toMatchObject({ outcome: 'applied' });
});

test('an unknown key is missing, and a use of a disabled or revoked key is refused for good', async () => {
  await using it = await scene();
  expect(await it.client.verify('p1', keys.unknown, never())).toMatchObject({ reason: 'missing' });
  expect(await it.client.change(changeOf('usage', keys.unknown), never())).toMatchObject({
    reason: 'missing',
  });
  for (const [key, message] of [
    [keys.disabled, texts.disabled],
    [keys.revoked, texts.revoked],
  ] as const) {
    expect(await it.client.change(changeOf('usage', key), never())).toMatchObject({
      reason: 'refused',
      license: { enabled: false, extra: { success: false, message } },
    });
  }
  expect(it.store.calls.every(({ counted }) => counted === 0)).toBe(true);
});

testNoVerdicts(scene, ({ client }) => [
  () => client.verify('p1', keys.good, never()),
  () => client.change(changeOf('usage'), never()),
]);
