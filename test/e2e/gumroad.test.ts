import { expect, test } from 'vitest';
import { texts } from '../../src/stores/gumroad/wire.ts';
import { codeOf, eventually } from '../support/harness/agent-harness.ts';
import { latchkey, type Outcome } from '../support/process/command-line.ts';
import { accessToken, keys, permalink, productId, startGumroad } from '../support/stores/gumroad.ts';
import { testStoreAgent } from '../support/stores/store-agent.ts';
import { answerOf } from '../support/stores/store-harness.ts';

/* An agent of Gumroad, as its seller and the programs of its customers see it. */

const refused = (message: string): object => ({ success: false, message });

testStoreAgent({
  store: 'gumroad',
  productKey: productId,
  accessToken,
  keys,
  start: startGumroad,
  calls(licenseKey) {
    const form = { product_id: productId, license_key: licenseKey, access_token: accessToken };
    const changes = ['disable', 'decrement_uses_count', 'rotate', 'enable'];
    return [
      { path: '/v2/licenses/verify', form: { ...form, increment_uses_count: 'false' } },
      { path: '/v2/licenses/verify', form },
      ...changes.map((name) => ({ method: 'put' as const, path: `/v2/licenses/${name}`, form })),
    ];
  },
  unknown: refused(texts.unknown),
  async use(it) {
    await it.call(keys.good);
    await it.call(keys.good, { access_token: accessToken }, 'decrement_uses_count');
  },
});

test.concurrent('the first counting verify of a key reads it first, and counts one use', async () => {
  await using it = await startGumroad({ upstream: { probe: '1h' } });
  expect(await it.call(keys.good)).toMatchObject({
    status: 200,
    body: { success: true, uses: 4, purchase: { license_key: keys.good, refunded: false } },
    headers: { 'latchkey-freshness': 'fresh' },
  });
  const counted = it.store.calls.filter(({ licenseKey }) => licenseKey === keys.good);
  expect(counted.map((call) => call.counted)).toEqual([0, 1]);
});

test.concurrent('a counting verify answers with the count of all installations', async () => {
  await using it = await startGumroad();
  await it.call(keys.good);
  it.store.change(keys.good, { uses: 10 });
  expect(await it.call(keys.good)).toMatchObject({ body: { uses: 11 } });
});

test.concurrent('a key in lower case is the same key', async () => {
  await using it = await startGumroad();
  await it.call(keys.good);
  expect(await it.call(keys.good.toLowerCase())).toMatchObject({ body: { uses: 5 } });
  expect(await it.agent.operations('dead')).toEqual([]);
});

test.concurrent(
  'a key of the seller’s own in other letters is the same license, also during an outage',
  async () => {
    await using it = await startGumroad();
    it.store.sell({ licenseKey: 'Seller-Own-Key-7', uses: 2 });
    const spellings = ['seller-own-key-7', 'SELLER-OWN-KEY-7', 'Seller-Own-Key-7'];
    for (const [index, spelling] of spellings.entries()) {
      expect(await it.call(spelling)).toMatchObject({
        body: { uses: 3 + index, purchase: { license_key: 'Seller-Own-Key-7' } },
      });
    }
    await it.call('seller-own-key-7', { access_token: accessToken }, 'disable');
    await it.network.become({ kind: 'refuse' });
    for (const spelling of spellings)
      expect(await it.call(spelling)).toMatchObject({ status: 404, body: refused(texts.disabled) });
    expect(await answerOf(it.call('sELLER-OWN-KEY-7'))).toBeNull();
    await it.network.become({ kind: 'pass' });
    await it.agent.atRest();
    expect(it.store.countedAt('Seller-Own-Key-7')).toBe(3);
    expect(it.store.license('Seller-Own-Key-7')).toMatchObject({ uses: 5, isDisabled: true });
  },
);

test.concurrent(
  'a key that was disabled since is refused at its next use, and nothing is counted',
  async () => {
    await using it = await startGumroad({ freshness: { refresh: '1h' } });
    await it.call(keys.good, { increment_uses_count: 'false' });
    it.store.change(keys.good, { isDisabled: true });
    expect(await it.call(keys.good)).toMatchObject({ status: 404, body: refused(texts.disabled) });
    expect(await it.call(keys.good, { increment_uses_count: 'false' })).toMatchObject({ status: 404 });
    expect(it.store.countedAt(keys.good)).toBe(0);
    expect(await it.agent.operations('dead')).toMatchObject([{ kind: 'usage', license_key: keys.good }]);
  },
);

test.concurrent(
  'a use waits during an outage; if the key was disabled meanwhile, it is refused',
  async () => {
    // The agent is killed below: a use that is just being sent would be in doubt.
    await using it = await startGumroad({ sync: { breaker: { failures: 1, open: '1h' } } });
    await it.call(keys.good);
    await it.network.become({ kind: 'refuse' });
    await eventually(async () => (await it.agent.status()).upstream.state === 'down');
    expect(await it.call(keys.good)).toMatchObject({ status: 200, body: { uses: 5 } });
    it.store.change(keys.good, { isDisabled: true });
    await it.restart({});
    await it.network.become({ kind: 'pass' });
    await eventually(async () => (await it.agent.operations('dead')).length === 1);
    expect(await it.call(keys.good)).toMatchObject({ status: 404, body: refused(texts.disabled) });
    expect(it.store.license(keys.good).uses).toBe(4);
  },
);

test.concurrent('a use whose answer was lost is counted once', async () => {
  await using it = await startGumroad({ upstream: { timeout: '1s' }, sync: { writers: 'single' } });
  await it.call(keys.good);
  let lost = 0;
  it.store.fault = ({ parameters }) =>
    parameters['increment_uses_count'] === 'true' && (lost += 1) === 1 ? 'lost_answer' : undefined;
  expect(await it.call(keys.good)).toMatchObject({ status: 200, body: { uses: 5 } });
  await it.agent.atRest();
  expect(it.store.license(keys.good).uses).toBe(5);
  expect(await it.call(keys.good, { increment_uses_count: 'false' })).toMatchObject({ body: { uses: 5 } });
});

test.concurrent(
  'a use in doubt of a key that was disabled meanwhile waits until Gumroad tells the count',
  async () => {
    await using it = await startGumroad({ upstream: { timeout: '1s' } });
    await it.call(keys.good);
    it.store.fault = ({ parameters }) => {
      if (parameters['increment_uses_count'] !== 'true') return undefined;
      it.store.fault = () => undefined;
      return 'lost_answer';
    };
    await it.call(keys.good);
    it.store.change(keys.good, { isDisabled: true });
    await eventually(async () => (await it.call(keys.good)).status === 404);
    await eventually(async () => {
      const [operation] = await it.agent.operations('uncertain');
      return operation?.last_error?.includes('counts no use') === true;
    });
    it.store.change(keys.good, { isDisabled: false });
    await it.agent.atRest();
    expect(it.store.license(keys.good).uses).toBe(5);
  },
);

test.concurrent('wrong parameters get the answer of Gumroad', async () => {
  await using it = await startGumroad();
  const { client } = it.agent;
  const verify = async (json: object): Promise<object> => {
    const { status, body } = await client.post('/v2/licenses/verify', { json });
    return { status, body };
  };
  expect(await verify({ license_key: 7, product_id: productId })).toEqual({
    status: 400,
    body: refused("The 'license_key' parameter must be a string."),
  });
  expect(await verify({ product_id: productId })).toEqual({ status: 404, body: refused(texts.unknown) });
  expect(await verify({ license_key: keys.good })).toMatchObject({
    status: 500,
    body: {
      success: false,
      message: expect.stringContaining("'product_id' parameter is required") as string,
    },
  });
  expect(await verify({ license_key: keys.good, product_permalink: 'another' })).toEqual({
    status: 404,
    body: refused(texts.unknown),
  });
  expect(await verify({ license_key: keys.good, product_permalink: permalink.toLowerCase() })).toMatchObject({
    status: 200,
  });
  expect(it.store.license(keys.good).uses).toBe(4);
  const { status } = await client.put('/v2/licenses/disable', {
    json: { license_key: keys.good, product_permalink: 'another', access_token: accessToken },
  });
  expect(status).toBe(404);
  expect(it.store.license(keys.good).isDisabled).toBe(false);
});

test.concurrent('a body is read as Gumroad’s framework reads it, and a strange one is ignored', async () => {
  await using it = await startGumroad();
  const query = new URLSearchParams({ product_id: productId, license_key: keys.good }).toString();
  const send = async (
    type: string | null,
    body: string,
    path = `/v2/licenses/verify?${query}`,
  ): Promise<number> => {
    const headers = type === null ? {} : { 'content-type': type };
    return (await it.agent.client.post(path, { headers, body })).status;
  };
  expect(await send('text/plain;charset=UTF-8', 'hello')).toBe(200);
  expect(await send('nonsense', 'hello')).toBe(200);
  expect(await send('application/octet-stream', 'hello')).toBe(200);
  expect(await send('application/json', '')).toBe(200);
  expect(await send('application/json; charset=ISO-8859-1', '{}')).toBe(200);
  // A POST without a type is a form.
  expect(await send(null, query, '/v2/licenses/verify')).toBe(200);
  expect(await send(null, query, '/api/v2/licenses/verify/')).toBe(200);
  const latin = 'application/x-www-form-urlencoded; charset=ISO-8859-1';
  expect(await send(latin, query, '/v2/licenses/verify')).toBe(200);
  const part = (name: string, value: string): string =>
    `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const multipart = `${part('product_id', productId)}${part('license_key', keys.good)}--x--\r\n`;
  expect(await send('multipart/form-data; boundary=x', multipart, '/v2/licenses/verify')).toBe(200);
  expect(await send('multipart/form-data; boundary=y', multipart, '/v2/licenses/verify')).toBe(400);
  expect(it.store.license(keys.good).uses).toBe(12);
});

test.concurrent(
  'what only the agent refuses closes the connection: it is no answer about the key',
  async () => {
    await using it = await startGumroad();
    const form = new URLSearchParams({ product_id: productId, license_key: keys.good }).toString();
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const send = async (body: string, headers: Record<string, string> = {}): Promise<object | null> =>
      await answerOf(it.agent.client.post('/v2/licenses/verify', { headers: { ...type, ...headers }, body }));
    expect(await send(`${form}&more=${'x'.repeat(20_000)}`)).toBeNull();
    expect(await send(form, { 'content-encoding': 'gzip' })).toBeNull();
    expect(await send(`${form}&license_key=${keys.unknown}`)).toBeNull();
    expect(await send(form)).toMatchObject({ status: 200 });
  },
);

test.concurrent('agents of Gumroad can stand behind each other', async () => {
  await using it = await startGumroad();
  await using below = await startGumroad({ upstream: { base_url: it.agent.process.tcp } });
  expect(await below.call(keys.good)).toMatchObject({ status: 200, body: { uses: 4 } });
  await it.network.become({ kind: 'refuse' });
  expect(await below.call(keys.good)).toMatchObject({ status: 200, body: { uses: 5 } });
  expect(await answerOf(below.call(keys.unseen))).toBeNull();
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).uses === 5);
  expect(await below.call(keys.good, { access_token: accessToken }, 'disable')).toMatchObject({
    status: 200,
  });
  await eventually(() => it.store.license(keys.good).isDisabled);
});

test.concurrent('a product that is not configured closes the connection, and the log names it', async () => {
  await using it = await startGumroad();
  expect(await answerOf(it.call(keys.good, { product_id: 'another' }))).toBeNull();
  await it.agent.process.said('software asks for a product that is not in products');
});

test.concurrent(
  'a permalink may be that of a product that is not configured: no key is unknown by it',
  async () => {
    const another = { productId: 'another==', permalink: 'another' };
    const configuration = { products: [{ key: productId }], upstream: { probe: '1h' } };
    await using it = await startGumroad(configuration, [{ productId, permalink }, another]);
    const ofAnother = '99999999-AAAAAAAA-99999999-AAAAAAAA';
    it.store.sell({ licenseKey: ofAnother, productId: another.productId });
    const answer = async (key: string, name: string): Promise<number | undefined> =>
      (await answerOf(it.call(key, { product_id: '', product_permalink: name })))?.status;
    expect(await answer(ofAnother, 'another')).toBeUndefined();
    expect(await answer(keys.unknown, permalink)).toBeUndefined();
    await it.agent.process.said('software asks for a product that is not in products');
    // A purchase shows the permalink of its product.
    expect(await answer(keys.good, permalink.toLowerCase())).toBe(200);
    expect(await answer(keys.unknown, permalink)).toBe(404);
    expect(await answer(keys.good, 'another')).toBe(404);
    expect(await answer(ofAnother, 'another')).toBeUndefined();
  },
);

test.concurrent('the seller disables, enables and takes back uses with the access token', async () => {
  await using it = await startGumroad();
  await it.call(keys.good);
  const token = { access_token: accessToken };
  expect(await it.call(keys.good, {}, 'disable')).toMatchObject({ status: 401 });
  expect(await it.call(keys.good, { access_token: 'wrong' }, 'disable')).toMatchObject({ status: 401 });
  expect(await it.call(keys.good, token, 'disable')).toMatchObject({
    status: 200,
    body: { success: true, uses: 4, purchase: { license_key: keys.good } },
  });
  expect(await it.call(keys.good)).toMatchObject({ status: 404, body: refused(texts.disabled) });
  await it.agent.atRest();
  expect(it.store.license(keys.good).isDisabled).toBe(true);
  expect(await it.call(keys.good, token, 'decrement_uses_count')).toMatchObject({
    status: 200,
    body: { uses: 3 },
  });
  expect(await it.call(keys.good, { increment_uses_count: 'false' })).toMatchObject({ status: 404 });
  expect(await it.call(keys.good, token, 'enable')).toMatchObject({ status: 200, body: { success: true } });
  expect(await it.call(keys.good, { increment_uses_count: 'false' })).toMatchObject({
    status: 200,
    body: { uses: 3 },
  });
  expect(it.store.license(keys.good)).toMatchObject({ uses: 3, isDisabled: false });
  expect(await it.call(keys.revoked, token, 'enable')).toMatchObject({
    status: 404,
    body: refused(texts.revoked),
  });
});

test.concurrent('a rotation is passed on, and the old key is refused at once', async () => {
  await using it = await startGumroad({ freshness: { refresh: '1h' } });
  await it.call(keys.good);
  const rotated = await it.call(keys.good, { access_token: accessToken }, 'rotate');
  const { license_key: newKey } = (rotated.body as { purchase: { license_key: string } }).purchase;
  expect(newKey).not.toBe(keys.good);
  expect(await it.call(newKey, { increment_uses_count: 'false' })).toMatchObject({ status: 200 });
  await it.network.become({ kind: 'refuse' });
  expect(await it.call(keys.good)).toMatchObject({ status: 404, body: refused(texts.unknown) });
  expect(await answerOf(it.call(newKey, { access_token: accessToken }, 'rotate'))).toBeNull();
  expect(await it.call(newKey)).toMatchObject({ status: 200 });
});

test.concurrent('a disable during an outage holds at once, and arrives later', async () => {
  await using it = await startGumroad();
  await it.call(keys.good);
  await it.network.become({ kind: 'refuse' });
  const answer = await it.call(keys.good, { access_token: accessToken }, 'disable');
  expect(answer).toMatchObject({ status: 200, body: { uses: 4 } });
  expect(await it.call(keys.good)).toMatchObject({ status: 404, body: refused(texts.disabled) });
  await it.restart();
  expect(await it.call(keys.good)).toMatchObject({ status: 404 });
  await it.network.become({ kind: 'pass' });
  await eventually(() => it.store.license(keys.good).isDisabled);
  expect(it.store.license(keys.good).uses).toBe(4);
});

test.concurrent('a refund is shown as soon as Gumroad shows it', async () => {
  await using it = await startGumroad({ freshness: { refresh: '1s' } });
  await it.call(keys.good, { increment_uses_count: 'false' });
  it.store.refund(keys.good);
  await eventually(async () => {
    const { body } = await it.call(keys.good, { increment_uses_count: 'false' });
    return (body as { purchase: { refunded: boolean } }).purchase.refunded;
  });
  // A refund is no reason for Gumroad to count no use.
  expect(await it.call(keys.good)).toMatchObject({ status: 200, body: { uses: 4 } });
});

test.concurrent('a refund is shown at any age, also to a verify that counts', async () => {
  const freshness = { fresh: '100ms', stale: '100ms', grace: '100ms', refresh: '1h' };
  await using it = await startGumroad({ freshness, upstream: { probe: '1h' } });
  await it.call(keys.refunded, { increment_uses_count: 'false' });
  await it.network.become({ kind: 'refuse' });
  await eventually(async () => {
    const { headers } = await it.call(keys.refunded, { increment_uses_count: 'false' });
    return headers['latchkey-freshness'] === 'expired';
  });
  expect(await answerOf(it.call(keys.refunded))).toMatchObject({
    status: 200,
    body: { uses: 0, purchase: { refunded: true } },
  });
});

test.concurrent('an event about a refund makes the agent read the key at once', async () => {
  await using it = await startGumroad({
    freshness: { refresh: '1h' },
    webhooks: { in: { shop: { from: 'gumroad', secret: 'secret-of-the-url' } } },
  });
  await it.call(keys.good, { increment_uses_count: 'false' });
  it.store.refund(keys.good);
  const form = {
    resource_name: 'refund',
    license_key: keys.good,
    email: 'buyer@example.com',
    refunded: 'true',
  };
  const event = await it.agent.client.post('/hooks/v1/shop?secret=secret-of-the-url', { form });
  expect(event.status).toBe(200);
  await eventually(async () => {
    const { body } = await it.call(keys.good, { increment_uses_count: 'false' });
    return (body as { purchase: { refunded: boolean } }).purchase.refunded;
  });
});

test.concurrent(
  'preload --from-store makes an agent answer for keys that it was never asked about, and goes on after a failure',
  async () => {
    const products = [
      { productId, permalink },
      { productId: 'B==', permalink: 'other' },
    ];
    await using it = await startGumroad({ upstream: { probe: '1h' } }, products);
    const sold = Array.from(
      { length: 25 },
      (_, n) => `${String(n).padStart(8, '0')}-AAAAAAAA-BBBBBBBB-CCCCCCCC`,
    );
    for (const licenseKey of sold) it.store.sell({ licenseKey, productId: 'B==' });
    const preload = async (...argv: string[]): Promise<Outcome> =>
      await latchkey('preload', '--from-store', ...argv, '--config', it.file);
    it.store.scopes = new Set(['edit_products']);
    const failed = await preload();
    expect(failed).toMatchObject({ code: 1, out: '' });
    expect(failed.err).toContain('refuses upstream.access_token, which needs the scope view_sales');
    it.store.scopes = new Set(['view_sales']);

    let pages = 0;
    it.store.fault = ({ name }) => (name === 'sales' && (pages += 1) === 3 ? 'page' : undefined);
    const stopped = await preload();
    const [, after = ''] =
      /17 license keys are queued; for the rest: .* --after (\S+)/.exec(stopped.err) ?? [];
    expect([stopped.code, after]).toEqual([1, expect.stringMatching(/./)]);
    const rest = await preload('--after', after);
    expect([rest.code, rest.out]).toEqual([0, expect.stringContaining('15 license keys are queued.')]);
    await eventually(async () => (await it.agent.status()).preload.left === 0);

    await it.network.become({ kind: 'refuse' });
    const other = { product_id: 'B==', increment_uses_count: 'false' };
    for (const licenseKey of sold)
      expect(await it.call(licenseKey, other)).toMatchObject({ status: 200, body: { success: true } });
    expect(await it.call(keys.disabled)).toMatchObject({ status: 404, body: { message: texts.disabled } });
  },
);

test.concurrent(
  'commands and routes of coupons say that coupons of Gumroad are not served here',
  async () => {
    await using it = await startGumroad();
    const { client } = it.agent;
    const answers = [
      await client.get('/api/v2/coupons'),
      await client.get('/api/v2/coupons/1'),
      await client.post('/api/v2/coupons', { form: { code: 'SPRING' } }),
      await client.post('/agent/v1/quote', { json: { items: [] } }),
      await client.get('/agent/v1/redemptions/1'),
    ];
    expect(answers.map((each) => `${each.status} ${String(codeOf(each))}`)).toEqual(
      answers.map(() => '501 not_offered_by_store'),
    );
    expect(await latchkey('coupon', 'list', '--config', it.file)).toMatchObject({
      code: 1,
      err: expect.stringContaining('Coupons of gumroad are not served here.') as string,
    });
  },
);
