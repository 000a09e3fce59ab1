import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { activatedKey, type ActivationAttempt } from '../../../src/domain/agent/activated-key.ts';
import type { LemonSqueezyStore } from '../../../src/features/sandbox/stores/lemonsqueezy.ts';
import { LemonSqueezyClient } from '../../../src/stores/lemonsqueezy/upstream.ts';
import { texts } from '../../../src/stores/lemonsqueezy/wire.ts';
import { never } from '../../support/harness/upstream-harness.ts';
import { apiKey, keys, openLemonSqueezy, storeId } from '../../support/stores/lemonsqueezy.ts';
import { type ClientScene, openClient, testNoVerdicts } from '../../support/stores/store-client.ts';

type Scene = ClientScene<LemonSqueezyStore, LemonSqueezyClient>;

async function scene(token: string | null = apiKey, url?: string): Promise<Scene> {
  const settings = { productKey: String(storeId), accessToken: token, ...(url !== undefined && { url }) };
  return openClient(await openLemonSqueezy(), LemonSqueezyClient, settings);
}

const laptop = { productId: 'p1', licenseKey: keys.good, name: 'Laptop' };
const attempt = (): ActivationAttempt => ({ id: 'x', ...laptop, sentAt: Date.now(), activationId: null });

function deactivationOf(id: string) {
  return {
    kind: 'disable',
    productId: 'p1',
    licenseKey: activatedKey(keys.good, id),
    requestId: 'request-1',
  } as const;
}

test('a read needs no credential, and names the instance', async () => {
  await using it = await scene();
  const id = it.store.activate(keys.good, 'Laptop');
  expect(await it.client.verify('p1', activatedKey(keys.good, id), never())).toMatchObject({
    outcome: 'applied',
    value: { licenseKey: activatedKey(keys.good, id), enabled: true, productKey: String(storeId) },
  });
  expect(it.store.calls).toMatchObject([
    {
      name: 'validate',
      parameters: { license_key: keys.good, instance_id: id },
      headers: { accept: 'application/json', 'latchkey-instance': 'me', 'user-agent': 'latchkey/test' },
    },
  ]);
  expect(it.store.calls[0]?.headers.authorization).toBeUndefined();
});

test('an unknown key is missing, and a key of a store that is not configured says nothing', async () => {
  await using it = await scene();
  expect(await it.client.verify('p1', keys.unknown, never())).toMatchObject({ reason: 'missing' });
  expect(await it.client.verify('p1', keys.ofAnotherSeller, never())).toMatchObject({ reason: 'rejected' });
});

test('an answer to an activate that does not say whether it was made proves nothing', async () => {
  const other = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end('{"message":"ok"}');
  });
  await once(other.listen(0, '127.0.0.1'), 'listening');
  try {
    const { port } = other.address() as AddressInfo;
    await using it = await scene(apiKey, `http://127.0.0.1:${port}`);
    expect(await it.client.activate(laptop, attempt(), never())).toMatchObject({ outcome: 'ambiguous' });
  } finally {
    other.close();
  }
});

test.each([texts.noInstance, texts.unknown])(
  'of an unknown instance, "%s" says that the instance is gone, if the key is known',
  async (error) => {
    await using it = await scene();
    it.store.noInstance = error;
    expect(await it.client.verify('p1', activatedKey(keys.good, 'gone'), never())).toMatchObject({
      reason: 'missing',
      license: { enabled: false, extra: { valid: false, error: texts.noInstance } },
    });
    const unknown = await it.client.verify('p1', activatedKey(keys.unknown, 'gone'), never());
    expect(unknown).toMatchObject({ reason: 'missing' });
    expect(unknown).not.toHaveProperty('license');
  },
);

test('a deactivation is delivered, also if the instance was gone', async () => {
  await using it = await scene();
  const id = it.store.activate(keys.good, 'Laptop');
  for (const status of [200, 404]) {
    expect(await it.client.change(deactivationOf(id), never())).toMatchObject({
      outcome: 'applied',
      value: { enabled: false },
    });
    expect(it.store.calls.at(-1)).toMatchObject({ status, headers: { 'x-request-id': 'request-1' } });
  }
  expect(it.store.license(keys.good).instances).toEqual([]);
});

test('a change that Lemon Squeezy does not have is refused, and nothing is sent', async () => {
  await using it = await scene();
  for (const change of [
    { ...deactivationOf('x'), kind: 'usage' },
    { ...deactivationOf('x'), licenseKey: keys.good },
  ] as const)
    expect(await it.client.change(change, never())).toMatchObject({ reason: 'refused', status: null });
  expect(it.store.calls).toEqual([]);
});

test('an activation is sent once, and a refusal is an answer', async () => {
  await using it = await scene();
  expect(await it.client.activate(laptop, attempt(), never())).toMatchObject({
    outcome: 'applied',
    value: { activationId: it.store.license(keys.good).instances[0]?.id, answer: { status: 200 } },
  });
  expect(await it.client.activate({ ...laptop, licenseKey: keys.full }, attempt(), never())).toMatchObject({
    value: { activationId: null, licenses: [], answer: { status: 400, body: { activated: false } } },
  });
  expect(it.store.calls).toHaveLength(2);
});

test('the instance of a lost activation is found by its name and its time, unless it cannot be told which it is', async () => {
  await using it = await scene();
  const find = it.client.findsActivations(attempt());
  const parameters = { keyId: it.store.license(keys.good).id };
  const idFound = async (
    made: ActivationAttempt,
    isStored: (id: string) => boolean = () => false,
  ): Promise<string | null | undefined> => {
    const outcome = await find?.({ ...laptop, parameters }, made, never(), isStored);
    if (outcome?.outcome !== 'applied') throw new Error(outcome?.detail);
    return outcome.value === null ? null : outcome.value.activationId;
  };
  it.store.activate(keys.good, 'Phone');
  expect(await idFound(attempt())).toBeNull();
  const id = it.store.activate(keys.good, 'Laptop');
  expect(await idFound(attempt())).toBe(id);
  expect(it.store.calls.find(({ name }) => name === 'instances')).toMatchObject({
    headers: { authorization: `Bearer ${apiKey}`, accept: 'application/vnd.api+json' },
  });
  expect(await idFound(attempt(), (each) => each === id)).toBeNull();
  const minute = 60_000;
  expect(await idFound({ ...attempt(), sentAt: Date.now() + minute })).toBeNull();
  expect(await idFound({ ...attempt(), sentAt: Date.now() - minute })).toBeNull();
  expect(await idFound({ ...attempt(), sentAt: Date.now() - minute, activationId: id })).toBe(id);
  it.store.activate(keys.good, 'Laptop');
  expect(await idFound(attempt())).toBeNull();
});

test('without an API key nothing is found, and a wrong one says nothing', async () => {
  await using without = await scene(null);
  expect(without.client.findsActivations(attempt())).toBeNull();
  expect(without.client.findsActivations({ ...attempt(), activationId: 'known' })).not.toBeNull();
  await using it = await scene('wrong');
  expect(
    await it.client.findsActivations(attempt())?.(
      { ...laptop, parameters: { keyId: 1 } },
      attempt(),
      never(),
      () => false,
    ),
  ).toMatchObject({ outcome: 'applied', value: null });
});

testNoVerdicts(scene, ({ client }) => [
  () => client.verify('p1', keys.good, never()),
  () => client.change(deactivationOf('x'), never()),
  () => client.activate(laptop, attempt(), never()),
]);
