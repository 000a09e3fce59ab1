import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { standInFaults } from '../../src/features/sandbox/stores/stand-in.ts';
import { texts } from '../../src/stores/lemonsqueezy/wire.ts';
import { eventually } from '../support/harness/agent-harness.ts';
import {
  apiKey,
  keys,
  startLemonSqueezy,
  storeId,
  type LemonSqueezyHarness,
} from '../support/stores/lemonsqueezy.ts';
import { testStoreAgent } from '../support/stores/store-agent.ts';
import { answerOf } from '../support/stores/store-harness.ts';

/* An agent of Lemon Squeezy, as its seller and the programs of its customers see it. */

const noKey = { error: texts.unknown, license_key: null, meta: null };

/** The activations that reached the store, whatever became of their answers. */
function activations({ store }: LemonSqueezyHarness): number {
  return store.calls.filter(({ name, counted }) => name === 'activate' && counted === 1).length;
}

testStoreAgent({
  store: 'lemonsqueezy',
  productKey: String(storeId),
  accessToken: apiKey,
  keys,
  start: startLemonSqueezy,
  calls(licenseKey) {
    const form = { license_key: licenseKey };
    const ofInstance = { ...form, instance_id: 'some', instance_name: 'x' };
    const names = ['validate', 'activate', 'deactivate'];
    return [
      { path: '/v1/licenses/validate', form },
      ...names.map((name) => ({ path: `/v1/licenses/${name}`, form: ofInstance })),
    ];
  },
  unknown: { valid: false, ...noKey },
  async use(it) {
    it.store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
    await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }));
    it.store.fault = () => undefined;
    await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }));
    const [instance] = it.store.license(keys.good).instances;
    await it.call('deactivate', keys.good, { instance_id: instance?.id ?? '' });
  },
});

test.concurrent('a validate counts nothing, and gets the answer of Lemon Squeezy', async () => {
  await using it = await startLemonSqueezy();
  const answer = await it.call('validate', keys.good);
  expect(answer).toMatchObject({
    status: 200,
    body: {
      valid: true,
      error: null,
      license_key: { key: keys.good, status: 'inactive', activation_usage: 0, activation_limit: 5 },
      instance: null,
      meta: { store_id: storeId, product_id: 4 },
    },
    headers: { 'latchkey-freshness': 'fresh' },
  });
  await it.network.become({ kind: 'refuse' });
  const away = await it.call('validate', keys.good);
  expect(away.body).toEqual(answer.body);
});

test.concurrent('an instance that was activated here is valid offline at once', async () => {
  await using it = await startLemonSqueezy();
  const activated = await it.call('activate', keys.good, { instance_name: 'Laptop' });
  expect(activated).toMatchObject({
    status: 200,
    body: {
      activated: true,
      error: null,
      instance: { name: 'Laptop' },
      license_key: { activation_usage: 1 },
    },
  });
  const { instance } = activated.body as { instance: { id: string } };
  await it.network.become({ kind: 'refuse' });
  await it.restart();
  expect(await it.call('validate', keys.good, { instance_id: instance.id })).toMatchObject({
    status: 200,
    body: { valid: true, instance, license_key: { activation_usage: 1, status: 'active' } },
  });
  expect(await it.call('validate', keys.good)).toMatchObject({ body: { valid: true, instance: null } });
  expect(await answerOf(it.call('validate', keys.good, { instance_id: 'another' }))).toBeNull();
});

test.concurrent(
  'each activate takes a seat, as at Lemon Squeezy, and a full key gets its refusal',
  async () => {
    await using it = await startLemonSqueezy();
    expect(await it.activate()).not.toBe(await it.activate());
    expect(it.store.license(keys.good).instances).toHaveLength(2);
    expect(await it.call('activate', keys.full, { instance_name: 'x' })).toMatchObject({
      status: 400,
      body: { activated: false, error: 'This license key has reached the activation limit.' },
    });
    expect(await it.call('activate', keys.disabled, { instance_name: 'x' })).toMatchObject({
      status: 400,
      body: { activated: false, error: 'license_key is disabled.' },
    });
  },
);

test.concurrent.for([200, 400, 404])(
  'a no with the status %d is answered with that status, at any age and offline',
  async (status) => {
    const freshness = { fresh: '1ms', stale: '2ms', grace: '3ms', refresh: '1h' };
    await using it = await startLemonSqueezy({ freshness });
    it.store.refusalStatus = status;
    const online = await Promise.all([keys.disabled, keys.expired].map((key) => it.call('validate', key)));
    expect(online).toMatchObject([
      {
        status,
        body: { valid: false, error: 'license_key is disabled.', license_key: { status: 'disabled' } },
      },
      { status, body: { valid: false, error: texts.expired, license_key: { status: 'expired' } } },
    ]);
    await it.network.become({ kind: 'refuse' });
    const away = await Promise.all([keys.disabled, keys.expired].map((key) => it.call('validate', key)));
    expect(away.map((each) => [each.status, each.body])).toEqual(
      online.map((each) => [each.status, each.body]),
    );
  },
);

test.concurrent(
  'about a key of a store that is not configured nothing is said, and it is not activated',
  async () => {
    await using it = await startLemonSqueezy();
    expect(await answerOf(it.call('validate', keys.ofAnotherSeller))).toBeNull();
    const activated = it.call('activate', keys.ofAnotherSeller, { instance_name: 'x' });
    expect(await answerOf(activated)).toBeNull();
    expect(activations(it)).toBe(0);
  },
);

test.concurrent('a deactivation during an outage holds at once, and arrives later', async () => {
  await using it = await startLemonSqueezy();
  const instance = { instance_id: await it.activate() };
  await it.network.become({ kind: 'refuse' });
  expect(await it.call('deactivate', keys.good, instance)).toMatchObject({
    status: 200,
    body: {
      deactivated: true,
      error: null,
      license_key: { key: keys.good, activation_usage: 0, status: 'inactive' },
      meta: { store_id: storeId },
    },
  });
  const gone = { valid: false, error: texts.noInstance };
  expect(await it.call('validate', keys.good, instance)).toMatchObject({ status: 404, body: gone });
  await it.restart();
  expect(await it.call('validate', keys.good, instance)).toMatchObject({ status: 404, body: gone });
  expect(await it.call('deactivate', keys.good, instance)).toMatchObject({
    status: 404,
    body: { deactivated: false, error: texts.noInstance },
  });
  expect(it.store.license(keys.good).instances).toHaveLength(1);
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).instances.length === 0);
  await it.agent.atRest();
  expect(await it.call('validate', keys.good, instance)).toMatchObject({ status: 404, body: gone });
});

test.concurrent('a deactivation online gets the count of Lemon Squeezy', async () => {
  await using it = await startLemonSqueezy();
  const instance = { instance_id: await it.activate() };
  it.store.activate(keys.good, 'Another machine');
  expect(await it.call('deactivate', keys.good, instance)).toMatchObject({
    status: 200,
    body: { deactivated: true, license_key: { activation_usage: 1, status: 'active' } },
  });
  await eventually(async () => {
    const { body } = await it.call('validate', keys.good);
    return (body as { license_key: { activation_usage: number } }).license_key.activation_usage === 1;
  });
});

test.concurrent.for(['license_key_instance not found.', 'instance_id not found.', texts.unknown])(
  'an instance that another machine has deactivated is refused, whether the store says "%s"',
  async (error) => {
    await using it = await startLemonSqueezy({ freshness: { refresh: '1s' } });
    it.store.noInstance = error;
    const instance = { instance_id: await it.activate() };
    it.store.deactivate(keys.good, instance.instance_id);
    await eventually(async () => (await it.call('validate', keys.good, instance)).status === 404);
    expect(await it.call('validate', keys.good)).toMatchObject({ body: { valid: true } });
    await it.network.become({ kind: 'refuse' });
    expect(await it.call('validate', keys.good, instance)).toMatchObject({
      status: 404,
      body: { valid: false, error: texts.noInstance },
    });
    expect(await answerOf(it.call('validate', keys.good, { instance_id: 'never-seen' }))).toBeNull();
  },
);

test.concurrent('a deactivation whose answer was lost is over when the instance is gone', async () => {
  await using it = await startLemonSqueezy({ upstream: { timeout: '1s' } });
  const instance = { instance_id: await it.activate() };
  it.store.fault = ({ name }) => {
    if (name !== 'deactivate') return undefined;
    it.store.fault = () => undefined;
    return 'lost_answer';
  };
  expect(await it.call('deactivate', keys.good, instance)).toMatchObject({ body: { deactivated: true } });
  await it.agent.atRest();
  expect(it.store.license(keys.good).instances).toEqual([]);
  expect(it.store.calls.filter(({ name }) => name === 'deactivate').map(({ status }) => status)).toEqual([
    200, 404,
  ]);
  expect(await it.agent.operations('dead')).toEqual([]);
});

test.concurrent(
  'after a lost answer no second seat is taken: the agent finds the instance by its name',
  async () => {
    await using it = await startLemonSqueezy({ upstream: { timeout: '1s' } });
    await it.call('validate', keys.good);
    const old = await it.activate(keys.good, 'Laptop');
    it.store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
    expect(await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }))).toBeNull();
    it.store.fault = () => undefined;
    // The state is kept over a kill.
    await it.restart();
    const found = await it.activate(keys.good, 'Laptop');
    expect(found).not.toBe(old);
    expect(it.store.license(keys.good).instances.map(({ id }) => id)).toEqual([old, found]);
    await it.network.become({ kind: 'refuse' });
    expect(await it.call('validate', keys.good, { instance_id: found })).toMatchObject({
      body: { valid: true, instance: { id: found, name: 'Laptop' } },
    });
  },
);

test.concurrent(
  'while Lemon Squeezy does not say what a lost activation has made, none is sent',
  async () => {
    await using it = await startLemonSqueezy({ upstream: { timeout: '1s' } });
    await it.call('validate', keys.good);
    it.store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
    await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }));
    for (const fault of standInFaults) {
      it.store.fault = ({ name }) => (name === 'instances' ? fault : undefined);
      const answer = await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }));
      expect(`${fault}: ${answer?.status}`).toBe(`${fault}: undefined`);
    }
    it.store.fault = () => undefined;
    await eventually(
      async () => (await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }))) !== null,
    );
    expect(activations(it)).toBe(1);
  },
);

test.concurrent(
  'without an API key a lost activation is sent again, and the log warns of the seat',
  async () => {
    await using it = await startLemonSqueezy({ upstream: { timeout: '1s', access_token: null } });
    await it.call('validate', keys.good);
    it.store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
    expect(await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }))).toBeNull();
    it.store.fault = () => undefined;
    await it.activate(keys.good, 'Laptop');
    expect(activations(it)).toBe(2);
    await it.agent.process.said(
      'the answer to an earlier activation was lost: it may have taken a seat whose id is not known',
    );
  },
);

test.concurrent('with a wrong API key activations go on', async () => {
  await using it = await startLemonSqueezy({ upstream: { timeout: '1s', access_token: 'wrong-key' } });
  await it.call('validate', keys.good);
  it.store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
  expect(await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }))).toBeNull();
  it.store.fault = () => undefined;
  await eventually(
    async () => (await answerOf(it.call('activate', keys.good, { instance_name: 'Laptop' }))) !== null,
  );
  expect(it.store.calls.find(({ name }) => name === 'instances')?.status).toBe(401);
});

const secret = 'signing-secret-of-the-store';

async function send(it: LemonSqueezyHarness, name: string, attributes: object): Promise<number> {
  const body = JSON.stringify({ meta: { event_name: name }, data: { type: 'x', id: '1', attributes } });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers = { 'content-type': 'application/json', 'x-event-name': name, 'x-signature': signature };
  return (await it.agent.client.post('/hooks/v1/shop', { headers, body })).status;
}

const withEvents = {
  freshness: { refresh: '1h', unknown: '1h' },
  webhooks: { in: { shop: { from: 'lemonsqueezy', secret } } },
};

test.concurrent('the event of a new key ends its 404 at once', async () => {
  await using it = await startLemonSqueezy(withEvents);
  const late = 'aaaaaaaa-5104-4067-a91d-77b872934d51';
  it.store.sell({ licenseKey: late, lateMs: 3_600_000 });
  for (let asked = 0; asked < 3; asked += 1) await it.call('validate', late);
  it.store.show(late);
  expect(await send(it, 'license_key_created', { key: late, user_email: 'buyer@example.com' })).toBe(200);
  await eventually(async () => (await it.call('validate', late)).status === 200);
});

test.concurrent.for(['license_key_updated', 'order_refunded'])(
  'after %s the agent reads the key and its instances at once',
  async (name) => {
    await using it = await startLemonSqueezy(withEvents);
    const instance = { instance_id: await it.activate() };
    it.store.change(keys.good, { isDisabled: true });
    // A refund names no key, only its buyer.
    const key = name === 'order_refunded' ? {} : { key: keys.good };
    expect(await send(it, name, { ...key, user_email: 'buyer@example.com' })).toBe(200);
    await eventually(async () => {
      const answers = await Promise.all([
        it.call('validate', keys.good),
        it.call('validate', keys.good, instance),
      ]);
      return answers.every(({ body }) => !(body as { valid: boolean }).valid);
    });
  },
);

test.concurrent('a key that ends during an outage is expired a day later', async () => {
  const freshness = { refresh: '1h', expiry_grace: '1s' };
  await using it = await startLemonSqueezy({ freshness, upstream: { probe: '1h' } });
  it.store.change(keys.good, { expiresAt: Math.ceil(Date.now() / 1000) * 1000 + 12_000 });
  const instance = { instance_id: await it.activate() };
  await it.network.become({ kind: 'refuse' });
  expect(await it.call('validate', keys.good, instance)).toMatchObject({ body: { valid: true } });
  await eventually(async () => {
    const { body } = await it.call('validate', keys.good, instance);
    return !(body as { valid: boolean }).valid;
  });
  expect(await it.call('validate', keys.good, instance)).toMatchObject({
    status: 200,
    body: {
      valid: false,
      error: texts.expired,
      license_key: { status: 'expired' },
      instance: { name: 'Laptop' },
    },
  });
});

test.concurrent('wrong parameters get the answer of Lemon Squeezy', async () => {
  await using it = await startLemonSqueezy();
  const post = async (name: string, json: object): Promise<object> => {
    const { status, body } = await it.agent.client.post(`/v1/licenses/${name}`, { json });
    return { status, body };
  };
  expect(await post('validate', {})).toEqual({
    status: 422,
    body: {
      message: 'The license key field is required.',
      errors: { license_key: ['The license key field is required.'] },
    },
  });
  expect(await post('activate', { license_key: keys.good, instance_name: ' ' })).toMatchObject({
    status: 422,
    body: { errors: { instance_name: ['The instance name field is required.'] } },
  });
  expect(await post('deactivate', { instance_id: '' })).toMatchObject({
    status: 422,
    body: { message: 'The license key field is required. (and 1 more error)' },
  });
  expect(await post('validate', { license_key: `${keys.good} #x` })).toMatchObject({
    status: 404,
    body: { valid: false, ...noKey },
  });
  expect(it.store.calls.filter(({ licenseKey }) => licenseKey.includes('#'))).toEqual([]);
});

test.concurrent('parameters may be in the query, a form, multipart, JSON and JSON:API', async () => {
  await using it = await startLemonSqueezy();
  const send_ = async (type: string, body: string, query = ''): Promise<number> => {
    const headers = { 'content-type': type, authorization: 'Bearer some-key' };
    return (await it.agent.client.post(`/v1/licenses/validate${query}`, { headers, body })).status;
  };
  const json = JSON.stringify({ license_key: keys.good });
  expect(await send_('application/json', json)).toBe(200);
  expect(await send_('application/vnd.api+json', json)).toBe(200);
  expect(await send_('application/x-www-form-urlencoded', `license_key=${keys.good}`)).toBe(200);
  expect(await send_('text/plain', 'hello', `?license_key=${keys.good}`)).toBe(200);
  const part = `--x\r\ncontent-disposition: form-data; name="license_key"\r\n\r\n${keys.good}\r\n--x--\r\n`;
  expect(await send_('multipart/form-data; boundary=x', part)).toBe(200);
  expect(await send_('application/json', '{')).toBe(422);
});

test.concurrent('under /api a use is refused, and an instance is deactivated by a disable', async () => {
  await using it = await startLemonSqueezy();
  const id = await it.activate();
  const headers = { ...it.agent.admin, accept: 'application/problem+json' };
  const put = async (change: string, licenseKey: string) =>
    await it.agent.client.put(`/api/v2/license/${change}`, {
      headers,
      form: { license_key: licenseKey },
    });
  expect(await put('usage', keys.good)).toMatchObject({
    status: 501,
    body: { code: 'not_offered_by_store' },
  });
  expect(await put('disable', keys.good)).toMatchObject({ status: 501 });
  expect(await it.agent.operations('pending')).toEqual([]);
  expect(await put('disable', `${keys.good} #${id}`)).toMatchObject({ status: 200 });
  await eventually(() => it.store.license(keys.good).instances.length === 0);
});

test.concurrent('agents of Lemon Squeezy can stand behind each other', async () => {
  await using it = await startLemonSqueezy();
  await using below = await startLemonSqueezy({ upstream: { base_url: it.agent.process.tcp } });
  const instance = { instance_id: await below.activate() };
  await it.network.become({ kind: 'refuse' });
  expect(await below.call('validate', keys.good, instance)).toMatchObject({ body: { valid: true } });
  expect(await answerOf(below.call('validate', keys.unseen))).toBeNull();
  expect(await below.call('deactivate', keys.good, instance)).toMatchObject({ body: { deactivated: true } });
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).instances.length === 0);
});
