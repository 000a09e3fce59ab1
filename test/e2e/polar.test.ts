import { expect, test } from 'vitest';
import { texts } from '../../src/stores/polar/wire.ts';
import { eventually } from '../support/harness/agent-harness.ts';
import { latchkey } from '../support/process/command-line.ts';
import { accessToken, benefitId, keys, organizationId, startPolar } from '../support/stores/polar.ts';
import { type StoreCall, testStoreAgent } from '../support/stores/store-agent.ts';
import { answerOf } from '../support/stores/store-harness.ts';

/* An agent of Polar, as its seller and the programs of its customers see it. */

const notFound = (detail: string): object => ({ error: 'ResourceNotFound', detail });

testStoreAgent({
  store: 'polar',
  productKey: organizationId,
  accessToken,
  keys,
  start: startPolar,
  calls(licenseKey) {
    const call = (name: string, members: object): StoreCall => ({
      path: `/v1/customer-portal/license-keys/${name}`,
      json: { key: licenseKey, organization_id: organizationId, ...members },
    });
    return [
      call('validate', {}),
      call('validate', { increment_usage: 2 }),
      call('validate', { activation_id: benefitId }),
      call('validate', { activation_id: benefitId, conditions: { version: 1 } }),
      call('validate', { benefit_id: organizationId }),
      call('activate', { label: 'laptop' }),
      call('deactivate', { activation_id: benefitId }),
    ];
  },
  unknown: notFound(texts.unknown),
  async use(it) {
    await it.validate(keys.good, { increment_usage: 2 });
    const activated = await answerOf(it.call('activate', keys.good, { label: 'laptop' }));
    const { id = benefitId } = (activated?.body ?? {}) as { id?: string };
    await answerOf(it.call('deactivate', keys.good, { activation_id: id }));
  },
});

test.concurrent('a validation is answered as Polar answers it, and counts nothing', async () => {
  await using it = await startPolar({ freshness: { refresh: '1h' }, upstream: { probe: '1h' } });
  const first = await it.validate(keys.good);
  expect(first).toMatchObject({
    status: 200,
    body: { key: keys.good, status: 'granted', usage: 3, limit_usage: 100, activation: null },
    headers: { 'latchkey-freshness': 'fresh' },
  });
  expect(first.body).not.toHaveProperty('latchkey_conditions');
  expect(await it.validate(keys.good)).toMatchObject({ body: first.body as object });
  expect(it.store.license(keys.good)).toMatchObject({ usage: 3, validations: 1 });
});

test.concurrent('each no is said as Polar says it, and holds at any age', async () => {
  await using it = await startPolar({ upstream: { probe: '1h' } });
  const nos = {
    revoked: texts.inactive,
    disabled: texts.inactive,
    expired: texts.expired,
    unknown: texts.unknown,
  } as const;
  for (const [name, text] of Object.entries(nos)) {
    const answer = await it.validate(keys[name as keyof typeof nos], { increment_usage: 2 });
    expect(answer).toMatchObject({ status: 404, body: notFound(text) });
  }
  await it.network.become({ kind: 'refuse' });
  await it.restart({ freshness: { fresh: '1ms', stale: '2ms', grace: '3ms', refresh: '1h' } });
  for (const name of ['revoked', 'disabled', 'expired'] as const)
    expect(await it.validate(keys[name])).toMatchObject({ status: 404, body: notFound(nos[name]) });
  expect(await answerOf(it.validate(keys.good))).toBeNull();
});

test.concurrent('several uses in one request are counted once, and arrive after an outage', async () => {
  // The agent is killed below: a use that is just being sent would be in doubt.
  await using it = await startPolar({ sync: { breaker: { failures: 1, open: '1h' } } });
  expect(await it.validate(keys.good, { increment_usage: 5 })).toMatchObject({
    status: 200,
    body: { usage: 8 },
  });
  await it.network.become({ kind: 'refuse' });
  await eventually(async () => (await it.agent.status()).upstream.state === 'down');
  expect(await it.validate(keys.good, { increment_usage: 10 })).toMatchObject({ body: { usage: 18 } });
  expect(await it.validate(keys.good, { increment_usage: 1 })).toMatchObject({ body: { usage: 19 } });
  expect(await it.agent.operations('pending')).toMatchObject([
    { kind: 'usage', amount: 10 },
    { kind: 'usage', amount: 1 },
  ]);
  const list = await latchkey('outbox', 'list', '--config', it.file);
  expect(list.out).toContain('usage of 10');
  await it.restart({});
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).usage === 19);
  expect(it.store.countedAt(keys.good)).toBe(16);
});

test.concurrent('uses whose answer was lost are counted once', async () => {
  await using it = await startPolar({ upstream: { timeout: '1s' }, sync: { writers: 'single' } });
  await it.validate(keys.good);
  let lost = 0;
  it.store.fault = ({ parameters }) =>
    parameters['increment_usage'] === 7 && (lost += 1) === 1 ? 'lost_answer' : undefined;
  expect(await it.validate(keys.good, { increment_usage: 7 })).toMatchObject({
    status: 200,
    body: { usage: 10 },
  });
  await it.agent.atRest();
  expect(it.store.license(keys.good).usage).toBe(10);
  expect(it.store.countedAt(keys.good)).toBe(7);
});

test.concurrent(
  'uses beyond the limit are refused in Polar’s words, online and during an outage',
  async () => {
    await using it = await startPolar({ freshness: { refresh: '1h' } });
    const tooMany = (left: number): object => ({
      status: 400,
      body: { error: 'BadRequest', detail: `License key only has ${left} more usages.` },
    });
    expect(await it.validate(keys.good, { increment_usage: 98 })).toMatchObject(tooMany(97));
    expect(await it.validate(keys.good, { increment_usage: 97 })).toMatchObject({ body: { usage: 100 } });
    await it.network.become({ kind: 'refuse' });
    expect(await it.validate(keys.good, { increment_usage: 1 })).toMatchObject(tooMany(0));
    expect(await it.validate(keys.good)).toMatchObject({ status: 200, body: { usage: 100 } });
    expect(await it.agent.operations('dead')).toEqual([]);
  },
);

test.concurrent(
  'uses that another program has taken are refused to the caller, and nobody is asked',
  async () => {
    await using it = await startPolar({ freshness: { refresh: '1h' } });
    await it.validate(keys.good);
    it.store.change(keys.good, { usage: 99 });
    expect(await it.validate(keys.good, { increment_usage: 2 })).toMatchObject({
      status: 400,
      body: { detail: 'License key only has 1 more usages.' },
    });
    expect(await it.agent.operations('dead')).toEqual([]);
    // The key is read again, so that the next answer knows it.
    await eventually(
      async () => (await it.validate(keys.good)).body !== undefined && it.store.calls.length > 2,
    );
    await eventually(
      async () => ((await it.validate(keys.good)) as { body: { usage: number } }).body.usage === 99,
    );
  },
);

test.concurrent('uses of an outage that Polar refuses later wait for a person', async () => {
  await using it = await startPolar({ freshness: { refresh: '1h' } });
  await it.validate(keys.good);
  await it.network.become({ kind: 'refuse' });
  await eventually(async () => (await it.agent.status()).upstream.state === 'down');
  expect(await it.validate(keys.good, { increment_usage: 50 })).toMatchObject({ body: { usage: 53 } });
  it.store.change(keys.good, { usage: 90 });
  await it.network.become({ kind: 'pass' });
  await eventually(async () => (await it.agent.operations('dead')).length === 1);
  expect(await it.agent.operations('dead')).toMatchObject([
    { amount: 50, last_error: 'HTTP 400: License key only has 10 more usages.' },
  ]);
  expect(it.store.license(keys.good).usage).toBe(90);
});

test.concurrent('an activation is passed on, and validated with its key also during an outage', async () => {
  await using it = await startPolar();
  const answer = await it.call('activate', keys.good, { label: 'laptop', meta: { ip: '10.0.0.1' } });
  expect(answer).toMatchObject({
    status: 200,
    body: { label: 'laptop', license_key: { key: keys.good, limit_activations: 3 } },
  });
  const { id, meta } = answer.body as { id: string; meta: object };
  expect(meta).toEqual({ ip: '10.0.0.1' });
  await it.network.become({ kind: 'refuse' });
  expect(await it.validate(keys.good, { activation_id: id, increment_usage: 2 })).toMatchObject({
    status: 200,
    body: { key: keys.good, usage: 5, activation: { id, label: 'laptop', meta: { ip: '10.0.0.1' } } },
  });
  // The key itself was shown with the activation.
  expect(await it.validate(keys.good)).toMatchObject({ status: 200, body: { usage: 5, activation: null } });
  expect(await answerOf(it.validate(keys.good, { activation_id: organizationId }))).toBeNull();
  expect(await answerOf(it.call('activate', keys.good, { label: 'another' }))).toBeNull();
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).usage === 5);
  expect(it.store.license(keys.good).activations).toMatchObject([{ label: 'laptop' }]);
});

test.concurrent('what Polar refuses to activate is refused with its words', async () => {
  await using it = await startPolar();
  const refused = async (key: string): Promise<object> => {
    const { status, body } = await it.call('activate', key, { label: 'laptop' });
    return { status, ...(body as object) };
  };
  const notPermitted = (detail: string): object => ({ status: 403, error: 'NotPermitted', detail });
  expect(await refused(keys.revoked)).toEqual(
    notPermitted('License key is no longer active. This license key can not be activated.'),
  );
  expect(await refused(keys.expired)).toEqual(notPermitted(texts.expired));
  expect(await refused(keys.running)).toMatchObject({
    status: 403,
    detail: expect.stringContaining('does not support activations') as string,
  });
  expect(await refused(keys.unknown)).toEqual({ status: 404, ...notFound(texts.unknown) });
  for (const label of ['a', 'b', 'c']) await it.activate(keys.good, { label });
  expect(await refused(keys.good)).toEqual(notPermitted('License key activation limit already reached'));
  expect(it.store.license(keys.good).activations).toHaveLength(3);
});

test.concurrent('an activation whose answer was lost takes one seat', async () => {
  await using it = await startPolar({ upstream: { timeout: '1s' } });
  let lost = 0;
  it.store.fault = ({ name }) => (name === 'activate' && (lost += 1) === 1 ? 'lost_answer' : undefined);
  expect(await answerOf(it.call('activate', keys.good, { label: 'laptop' }))).toBeNull();
  const id = await it.activate(keys.good);
  expect(it.store.license(keys.good).activations).toMatchObject([{ id, label: 'laptop' }]);
  expect(await it.validate(keys.good, { activation_id: id })).toMatchObject({ status: 200 });
});

test.concurrent('a deactivation holds at once, and frees the seat at Polar when it is back', async () => {
  await using it = await startPolar();
  const id = await it.activate(keys.good);
  const other = await it.activate(keys.good, { label: 'desktop' });
  await it.network.become({ kind: 'refuse' });
  expect(await it.call('deactivate', keys.good, { activation_id: id })).toMatchObject({ status: 204 });
  expect(await it.validate(keys.good, { activation_id: id })).toMatchObject({
    status: 404,
    body: notFound(texts.unknown),
  });
  expect(await it.call('deactivate', keys.good, { activation_id: id })).toMatchObject({ status: 404 });
  expect(await it.validate(keys.good, { activation_id: other })).toMatchObject({ status: 200 });
  await it.restart();
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).activations.length === 1);
  await it.agent.atRest();
  expect(await it.validate(keys.good, { activation_id: id })).toMatchObject({ status: 404 });
  expect(await it.validate(keys.good, { activation_id: other })).toMatchObject({ status: 200 });
});

test.concurrent('a deactivation whose answer was lost is sent again', async () => {
  await using it = await startPolar({ upstream: { timeout: '1s' } });
  const id = await it.activate(keys.good);
  let lost = 0;
  it.store.fault = ({ name }) => (name === 'deactivate' && (lost += 1) === 1 ? 'lost_answer' : undefined);
  expect(await it.call('deactivate', keys.good, { activation_id: id })).toMatchObject({ status: 204 });
  await it.agent.atRest();
  expect(it.store.license(keys.good).activations).toEqual([]);
  expect(await it.agent.operations('dead')).toEqual([]);
});

test.concurrent('a key that was revoked has no good activation', async () => {
  await using it = await startPolar({ freshness: { refresh: '1h' } });
  const id = await it.activate(keys.good);
  await it.validate(keys.good, { activation_id: id });
  it.store.change(keys.good, { status: 'revoked' });
  expect(await it.validate(keys.good, { activation_id: id, increment_usage: 1 })).toMatchObject({
    status: 404,
    body: notFound(texts.inactive),
  });
  await it.network.become({ kind: 'refuse' });
  expect(await it.validate(keys.good, { activation_id: id })).toMatchObject({
    status: 404,
    body: notFound(texts.inactive),
  });
  expect(it.store.countedAt(keys.good)).toBe(0);
});

test.concurrent('conditions are those of the activation; others are asked of Polar', async () => {
  await using it = await startPolar();
  const conditions = { major_version: 1, os: 'linux' };
  const id = await it.activate(keys.good, { conditions });
  const validate = (members: object): ReturnType<typeof it.validate> =>
    it.validate(keys.good, { activation_id: id, ...members });
  expect(await validate({ conditions: { os: 'linux', major_version: 1 } })).toMatchObject({ status: 200 });
  const wrong = { status: 404, body: notFound(texts.conditions) };
  expect(await validate({ conditions: { major_version: 2 } })).toMatchObject(wrong);
  expect(await validate({})).toMatchObject(wrong);
  // A background read has no conditions: it shows that the key is good, and nothing else.
  await eventually(() => it.store.calls.some(({ name, status }) => name === 'validate' && status === 404));
  await it.network.become({ kind: 'refuse' });
  const known = await validate({ conditions });
  expect(known).toMatchObject({ status: 200, body: { activation: { id } } });
  expect(JSON.stringify(known.body)).not.toContain('latchkey');
  expect(await answerOf(validate({ conditions: { major_version: 2 } }))).toBeNull();
  expect(await answerOf(validate({}))).toBeNull();
});

test.concurrent('an activation that another program has made is found with its conditions', async () => {
  await using it = await startPolar();
  const conditions = { major_version: 1 };
  const id = await it.activate(keys.good, { conditions });
  await using other = await startPolar({ upstream: { base_url: it.store.url } });
  const members = { activation_id: id, conditions };
  expect(await other.validate(keys.good, members)).toMatchObject({ status: 200, body: { usage: 3 } });
  await other.network.become({ kind: 'refuse' });
  it.store.fault = () => 'lost_request';
  expect(await other.validate(keys.good, members)).toMatchObject({ status: 200 });
});

test.concurrent('benefit and customer are compared here', async () => {
  await using it = await startPolar();
  const { customer_id: customerId } = (await it.validate(keys.good)).body as { customer_id: string };
  await it.network.become({ kind: 'refuse' });
  const good = { benefit_id: benefitId.toUpperCase(), customer_id: customerId };
  expect(await it.validate(keys.good, good)).toMatchObject({ status: 200 });
  expect(await it.validate(keys.good, { ...good, benefit_id: organizationId })).toMatchObject({
    status: 404,
    body: notFound(texts.benefit),
  });
  const another = { ...good, customer_id: organizationId, increment_usage: 1 };
  expect(await it.validate(keys.good, another)).toMatchObject({
    status: 404,
    body: notFound(texts.customer),
  });
  expect(await it.agent.operations('pending')).toEqual([]);
});

test.concurrent('the end of a key is known without Polar; a day later it is said', async () => {
  await using it = await startPolar({ freshness: { expiry_grace: '1s' } });
  it.store.change(keys.running, { expiresAt: Date.now() + 40_000 });
  expect(await it.validate(keys.running)).toMatchObject({ status: 200 });
  await it.network.become({ kind: 'refuse' });
  expect(await it.validate(keys.running)).toMatchObject({ status: 200 });
  await eventually(async () => (await it.validate(keys.running)).status === 404);
  expect(await it.validate(keys.running)).toMatchObject({ body: notFound(texts.expired) });
});

test.concurrent('wrong members get the list of Polar', async () => {
  await using it = await startPolar();
  const faults = async (name: string, json: object): Promise<unknown[]> => {
    const { status, body } = await it.agent.client.post(`/v1/customer-portal/license-keys/${name}`, { json });
    expect([status, (body as { error: string }).error]).toEqual([422, 'RequestValidationError']);
    return (body as { detail: { type: string; loc: unknown }[] }).detail.map(({ type, loc }) => [type, loc]);
  };
  const named = { key: keys.good, organization_id: organizationId };
  expect(await faults('validate', {})).toEqual([
    ['missing', ['body', 'key']],
    ['missing', ['body', 'organization_id']],
  ]);
  const wrong = { key: 7, organization_id: 'shop', increment_usage: -1, conditions: [] };
  expect(await faults('validate', wrong)).toEqual([
    ['string_type', ['body', 'key']],
    ['uuid_parsing', ['body', 'organization_id']],
    ['greater_than_equal', ['body', 'increment_usage']],
    ['dict_type', ['body', 'conditions']],
  ]);
  expect(await faults('activate', named)).toEqual([['missing', ['body', 'label']]]);
  expect(await faults('deactivate', { ...named, activation_id: 'x' })).toEqual([
    ['uuid_parsing', ['body', 'activation_id']],
  ]);
  const headers = { 'content-type': 'application/json' };
  const path = '/v1/customer-portal/license-keys/validate';
  expect(await it.agent.client.post(path, { headers, body: '{' })).toMatchObject({
    status: 422,
    body: { detail: [{ type: 'json_invalid' }] },
  });
  // The stand-in is written from Polar's source, and says the same.
  const { status, body } = await (async () => {
    const sent = await fetch(`${it.store.url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(wrong),
    });
    return { status: sent.status, body: (await sent.json()) as { detail: { type: string }[] } };
  })();
  expect([status, body.detail.map(({ type }) => type)]).toEqual([
    422,
    ['string_type', 'uuid_parsing', 'greater_than_equal', 'dict_type'],
  ]);
});

test.concurrent('the seller’s paths need the token of the organization', async () => {
  await using it = await startPolar();
  const call = (headers: Record<string, string>): ReturnType<typeof it.agent.client.post> =>
    it.agent.client.post('/v1/license-keys/validate', {
      json: { key: keys.good, organization_id: organizationId },
      headers,
    });
  expect(await call({})).toMatchObject({ status: 401, body: { error: 'Unauthorized' } });
  expect(await call({ authorization: 'Bearer wrong' })).toMatchObject({ status: 401 });
  expect(await call({ authorization: `Bearer ${accessToken}` })).toMatchObject({ status: 200 });
});

test.concurrent(
  'an organization that is not configured closes the connection, and the log names it',
  async () => {
    await using it = await startPolar();
    expect(await answerOf(it.validate(keys.good, { organization_id: benefitId }))).toBeNull();
    await it.agent.process.said('software asks for a product that is not in products');
    expect(await answerOf(it.validate(`${keys.good} #${benefitId}`))).toBeNull();
  },
);

test.concurrent('agents of Polar can stand behind each other', async () => {
  await using it = await startPolar();
  await using below = await startPolar({ upstream: { base_url: it.agent.process.tcp } });
  const id = await below.activate(keys.good);
  const members = { activation_id: id, increment_usage: 4 };
  expect(await below.validate(keys.good, members)).toMatchObject({ status: 200, body: { usage: 7 } });
  await it.network.become({ kind: 'refuse' });
  expect(await below.validate(keys.good, members)).toMatchObject({ status: 200, body: { usage: 11 } });
  expect(await answerOf(below.validate(keys.unseen))).toBeNull();
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).usage === 11);
});

test.concurrent(
  'an event about the customer makes the agent read the key and its activations at once',
  async () => {
    const secret = `whsec_${Buffer.from('polar-webhook-secret-of-32-bytes').toString('base64')}`;
    await using it = await startPolar({
      freshness: { refresh: '1h' },
      webhooks: { in: { shop: { from: 'standard', secret } } },
    });
    const id = await it.activate(keys.good);
    await it.validate(keys.good);
    it.store.change(keys.good, { status: 'revoked' });
    const body = JSON.stringify({
      type: 'benefit_grant.revoked',
      timestamp: new Date().toISOString(),
      data: {
        id: benefitId,
        is_granted: false,
        is_revoked: true,
        customer: { id: organizationId, email: 'buyer@example.com' },
        properties: { license_key_id: it.store.license(keys.good).id, display_key: '****-E304DA' },
      },
    });
    const at = String(Math.floor(Date.now() / 1000));
    const { createHmac } = await import('node:crypto');
    const signature = createHmac('sha256', Buffer.from('polar-webhook-secret-of-32-bytes'))
      .update(`msg_1.${at}.${body}`)
      .digest('base64');
    const headers = {
      'content-type': 'application/json',
      'webhook-id': 'msg_1',
      'webhook-timestamp': at,
      'webhook-signature': `v1,${signature}`,
    };
    expect(await it.agent.client.post('/hooks/v1/shop', { headers, body })).toMatchObject({ status: 200 });
    await eventually(async () => (await it.validate(keys.good)).status === 404);
    await eventually(async () => (await it.validate(keys.good, { activation_id: id })).status === 404);
  },
);
