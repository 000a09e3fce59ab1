import { array, asyncProperty, assert, constantFrom } from 'fast-check';
import { expect, test } from 'vitest';
import { activatedKey } from '../../../src/domain/agent/activated-key.ts';
import type { PolarStore } from '../../../src/features/sandbox/stores/polar.ts';
import type { StandInFault } from '../../../src/features/sandbox/stores/stand-in.ts';
import type { UpstreamChange } from '../../../src/service/ports.ts';
import { PolarClient } from '../../../src/stores/polar/upstream.ts';
import { givenBack, texts } from '../../../src/stores/polar/wire.ts';
import { never } from '../../support/harness/upstream-harness.ts';
import { accessToken, keys, openPolar, organizationId } from '../../support/stores/polar.ts';
import { type ClientScene, openClient, testNoVerdicts } from '../../support/stores/store-client.ts';

type Scene = ClientScene<PolarStore, PolarClient>;

async function scene(token: string | null = accessToken): Promise<Scene> {
  return openClient(await openPolar(), PolarClient, { productKey: organizationId, accessToken: token });
}

function changeOf(kind: UpstreamChange['kind'], licenseKey: string = keys.good, amount = 1): UpstreamChange {
  return { productId: 'p1', licenseKey, kind, amount, requestId: 'request-1' };
}

const parameters = { conditions: {}, meta: {}, conditionsName: null };
const activation = { productId: 'p1', licenseKey: keys.good, name: 'laptop', parameters };
const attemptOf = (id: string, activationId: string | null = null) => ({
  id,
  licenseKey: keys.good,
  name: 'laptop',
  sentAt: Date.now(),
  activationId,
});

async function activate({ client }: Scene, id: string): Promise<string> {
  const outcome = await client.activate(activation, attemptOf(id), never());
  if (outcome.outcome !== 'applied' || outcome.value.activationId === null) throw new Error('not activated');
  return outcome.value.activationId;
}

test('a read counts nothing, and needs no credential', async () => {
  await using it = await scene();
  expect(await it.client.verify('p1', keys.good, never())).toMatchObject({
    outcome: 'applied',
    value: { licenseKey: keys.good, uses: 3, usesLimit: 100, enabled: true, expiresAt: null },
  });
  expect(it.store.calls).toMatchObject([
    {
      name: 'validate',
      status: 200,
      counted: 0,
      parameters: { key: keys.good, organization_id: organizationId },
      headers: { 'latchkey-instance': 'me', 'user-agent': 'latchkey/test' },
    },
  ]);
  expect(it.store.calls[0]?.headers.authorization).toBeUndefined();
});

test('a key is valid until the second before Polar says that it has expired', async () => {
  await using it = await scene();
  it.store.change(keys.running, { expiresAt: Date.UTC(2099, 0, 1, 0, 0, 0) });
  expect(await it.client.verify('p1', keys.running, never())).toMatchObject({
    value: { expiresAt: Date.UTC(2098, 11, 31, 23, 59, 59) },
  });
});

test('uses are one validation, under the id of the request of their caller', async () => {
  await using it = await scene(null);
  expect(await it.client.change(changeOf('usage', keys.good, 5), never())).toMatchObject({
    outcome: 'applied',
    value: { uses: 8 },
  });
  expect(it.store.calls[0]).toMatchObject({ counted: 5, headers: { 'x-request-id': 'request-1' } });
  expect(await it.client.change(changeOf('usage', keys.good, 93), never())).toMatchObject({
    outcome: 'not_applied',
    reason: 'refused',
    message: 'License key only has 92 more usages.',
  });
});

test('a refusal of a use says that the key is closed, if Polar says so', async () => {
  await using it = await scene();
  const refused = await it.client.change(changeOf('usage', keys.revoked), never());
  expect(refused).toMatchObject({
    outcome: 'not_applied',
    reason: 'refused',
    license: { enabled: false, extra: { detail: texts.inactive } },
  });
  expect(await it.client.change(changeOf('usage', keys.unknown), never())).toMatchObject({
    reason: 'missing',
  });
});

test('what Polar has no request for is refused without one', async () => {
  await using it = await scene();
  const stored = activatedKey(keys.good, organizationId);
  for (const change of [
    changeOf('decrease'),
    changeOf('enable'),
    changeOf('disable'),
    changeOf('usage', stored),
  ])
    expect(await it.client.change(change, never())).toMatchObject({ reason: 'refused', status: null });
  expect(it.store.calls).toEqual([]);
});

test('an activation is given back once, however often that is sent', async () => {
  await using it = await scene();
  const stored = activatedKey(keys.good, await activate(it, 'attempt-1'));
  for (let time = 0; time < 2; time += 1) {
    const outcome = await it.client.change(changeOf('disable', stored), never());
    expect(outcome).toMatchObject({ outcome: 'applied', shows: 'enabled', value: { enabled: false } });
  }
  expect(it.store.license(keys.good).activations).toEqual([]);
  expect(await it.client.verify('p1', stored, never())).toMatchObject({
    reason: 'missing',
    license: { enabled: false, extra: givenBack },
  });
});

test('an activation is found by its mark, which its answer does not have', async () => {
  await using it = await scene();
  await activate(it, 'another');
  const id = await activate(it, 'attempt-1');
  const found = await it.client.findsActivations()(activation, attemptOf('attempt-1'), never(), () => false);
  expect(found).toMatchObject({
    outcome: 'applied',
    value: { activationId: id, answer: { status: 200, body: { id, label: 'laptop', meta: {} } } },
  });
  expect(JSON.stringify(found)).not.toContain('latchkey_activation');
  expect(it.store.calls.at(-1)).toMatchObject({
    name: 'read',
    headers: { authorization: `Bearer ${accessToken}` },
  });
  expect(
    await it.client.findsActivations()(activation, attemptOf('attempt-2'), never(), () => false),
  ).toMatchObject({
    outcome: 'applied',
    value: null,
  });
});

test('an activation that was given back since is not found, so that its caller gets another one', async () => {
  await using it = await scene();
  const id = await activate(it, 'attempt-1');
  await it.client.change(changeOf('disable', activatedKey(keys.good, id)), never());
  const find = it.client.findsActivations();
  expect(await find(activation, attemptOf('attempt-1', id), never(), () => false)).toMatchObject({
    outcome: 'applied',
    value: null,
  });
});

test('a later answer about an activation does not show our mark', async () => {
  await using it = await scene();
  const id = await activate(it, 'attempt-1');
  const read = await it.client.verify('p1', activatedKey(keys.good, id), never());
  expect(read).toMatchObject({ outcome: 'applied', value: { extra: { activation: { id } } } });
  expect(JSON.stringify(read)).not.toContain('latchkey_activation');
});

test('without a token, an activation is found only if its id is known', async () => {
  await using it = await scene(null);
  const id = await activate(it, 'attempt-1');
  const find = it.client.findsActivations();
  expect(await find(activation, attemptOf('attempt-1'), never(), () => false)).toMatchObject({ value: null });
  expect(await find(activation, attemptOf('attempt-1', id), never(), () => false)).toMatchObject({
    value: { activationId: id, answer: { body: { id, license_key: { key: keys.good } } } },
  });
});

test('whatever is lost, one seat is taken for one attempt that is repeated', async () => {
  await using it = await scene();
  const fates = constantFrom<StandInFault | undefined>(
    'lost_request',
    'lost_answer',
    'limited',
    'page',
    undefined,
  );
  let run = 0;
  const once = asyncProperty(array(fates, { maxLength: 4 }), async (drawn) => {
    const key = `KEY-${(run += 1)}`;
    it.store.sell({ licenseKey: key, limitActivations: 50 });
    const asked = { ...activation, licenseKey: key };
    let attempt: string | null = null;
    let taken: string | null = null;
    for (const fate of [...drawn, undefined]) {
      it.store.fault = ({ name }) => (name === 'activate' ? fate : undefined);
      // As the agent does: an attempt in doubt is looked for before another one is made.
      const found: { outcome: string; value?: { activationId: string | null } | null } =
        attempt === null
          ? { outcome: 'applied', value: null }
          : await it.client.findsActivations()(
              asked,
              { ...attemptOf(attempt), licenseKey: key },
              never(),
              () => false,
            );
      if (found.value?.activationId !== undefined) {
        taken = found.value?.activationId ?? null;
        break;
      }
      attempt = `attempt-${run}-${it.store.calls.length}`;
      const made = await it.client.activate(asked, { id: attempt }, never());
      if (made.outcome === 'applied') {
        taken = made.value.activationId;
        break;
      }
      if (made.outcome === 'not_applied') attempt = null;
    }
    expect(it.store.license(key).activations).toMatchObject([{ id: taken }]);
  });
  await assert(once, { numRuns: 60 });
});

test('an answer to an activation that is neither an activation nor a refusal of Polar proves nothing', async () => {
  await using it = await scene();
  it.store.handle = () => ({ status: 200, body: { error: 'SignIn', detail: 'Sign in to this network' } });
  expect(await it.client.activate(activation, attemptOf('attempt-1'), never())).toMatchObject({
    outcome: 'ambiguous',
  });
});

testNoVerdicts(scene, ({ client }) => [
  () => client.verify('p1', keys.good, never()),
  () => client.change(changeOf('usage'), never()),
  () => client.activate(activation, attemptOf('attempt-1'), never()),
]);
