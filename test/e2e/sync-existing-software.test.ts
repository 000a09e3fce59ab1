import { expect, test } from 'vitest';
import { apiKey, secret, startHarness, type AgentHarness } from '../support/harness/agent-harness.ts';
import {
  httpClient,
  sendRaw,
  type HttpClient,
  type Listener,
  type RequestOptions,
} from '../support/network/raw-http.ts';

/*
 * The requests of software that was written for the store's API and only changes its base URL. Each
 * request goes to the upstream itself first, and then to an agent in front of an identical
 * upstream.
 */

const licenses = [
  { licenseKey: 'AAAAA-BBBBB-CCCCC-DDDDD', uses: 3, date: '2024-02-22T11:23:05+00:00' },
  { licenseKey: 'Umlaut Größe+1', uses: 0, date: '2024-02-22T11:23:05+00:00' },
];

interface Call {
  readonly what: string;
  readonly method: 'get' | 'put' | 'post';
  readonly path: string;
  readonly options: RequestOptions;
}

const product = { 'product-secret-key': secret };
const both = { ...product, 'service-api-key': apiKey };
const account = { 'service-api-key': apiKey };
const key = 'AAAAA-BBBBB-CCCCC-DDDDD';

const calls: readonly Call[] = [
  {
    what: 'verifies by query',
    method: 'get',
    path: `/api/v2/license/verify?license_key=${key}`,
    options: { headers: product },
  },
  {
    what: 'sends both credentials at once',
    method: 'get',
    path: `/api/v2/license/verify?license_key=${key}`,
    options: { headers: both },
  },
  {
    what: 'sends header names in capitals and a user agent',
    method: 'get',
    path: `/api/v2/license/verify?license_key=${key}`,
    options: {
      headers: { 'Product-Secret-Key': secret, 'User-Agent': 'python-requests/2.31.0', Accept: '*/*' },
    },
  },
  {
    what: 'sends unknown parameters',
    method: 'get',
    path: `/api/v2/license/verify?license_key=${key}&product_link=RGsF&_=1700000000`,
    options: { headers: both },
  },
  {
    what: 'verifies a key with spaces, a plus and an umlaut',
    method: 'get',
    path: '/api/v2/license/verify?license_key=Umlaut+Gr%C3%B6%C3%9Fe%2B1',
    options: { headers: product },
  },
  {
    what: 'counts a use by a form',
    method: 'put',
    path: '/api/v2/license/usage',
    options: { headers: both, form: { license_key: key } },
  },
  {
    what: 'names the charset of its form',
    method: 'put',
    path: '/api/v2/license/usage',
    options: {
      headers: { ...both, 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' },
      body: `license_key=${key}`,
    },
  },
  {
    what: 'undoes a use',
    method: 'put',
    path: '/api/v2/license/decrease',
    options: { headers: both, form: { license_key: key } },
  },
  {
    what: 'disables a key',
    method: 'put',
    path: '/api/v2/license/disable',
    options: { headers: both, form: { license_key: key } },
  },
  {
    what: 'enables the key again',
    method: 'put',
    path: '/api/v2/license/enable',
    options: { headers: both, form: { license_key: key } },
  },
  {
    what: 'creates a coupon',
    method: 'post',
    path: '/api/v2/coupons',
    options: {
      headers: both,
      form: {
        coupon_type: 'single',
        code: 'TAKE20',
        product_key: 'product',
        percent_off: '20',
        notes: 'Thanks',
      },
    },
  },
  { what: 'lists coupons', method: 'get', path: '/api/v2/coupons', options: { headers: account } },
  {
    what: 'lists coupons in pages',
    method: 'get',
    path: '/api/v2/coupons?limit=1&offset=0',
    options: { headers: both },
  },
  { what: 'reads a coupon', method: 'get', path: '/api/v2/coupons/1', options: { headers: account } },
];

async function play(client: HttpClient): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const { what, method, path, options } of calls) {
    const { status, body } = await client[method](path, options);
    answers[what] = { isSuccess: status >= 200 && status < 300, body };
  }
  return answers;
}

const harnessOptions = { licenses, configuration: { upstream: { probe: '1h' } } };

async function playUpstream(): Promise<Record<string, unknown>> {
  await using harness = await startHarness(harnessOptions);
  await using client = httpClient({ tcp: harness.upstream.url });
  return await play(client);
}

function listenerOf({ agent }: AgentHarness, name: string): Listener {
  return name === 'TCP' ? { tcp: agent.process.tcp } : { socket: agent.process.socket ?? '' };
}

for (const name of ['TCP', 'its socket']) {
  test.concurrent(`an agent over ${name} answers existing software as the store itself does`, async () => {
    const expected = await playUpstream();
    await using harness = await startHarness(harnessOptions);
    await harness.startAgent();
    await using client = httpClient(listenerOf(harness, name));
    const answers = await play(client);
    expect(answers).toEqual(expected);
    await harness.agent.atRest();
    expect(harness.upstream.license(key)).toMatchObject({ uses: 4, enabled: true });
    // The agent sends the specification's form, with its own user agent and credential.
    const use = harness.upstream.ledger.find(({ kind }) => kind === 'usage');
    expect(use?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      'product-secret-key': secret,
    });
    expect(use?.parameters).toEqual({ license_key: key });
  });

  test.concurrent(
    `over ${name} the agent also accepts untrimmed keys, JSON, and the bytes that old clients send`,
    async () => {
      await using harness = await startHarness(harnessOptions);
      const agent = await harness.startAgent();
      await using client = httpClient(listenerOf(harness, name));
      const untrimmed = [
        `/api/v2/license/verify?license_key=%20${key}%0A`,
        `/api/v2/license/verify?license_key=+${key}+`,
        `/api/v2/license/verify?license_key=${key.toLowerCase()}`,
      ];
      for (const path of untrimmed) {
        const { status, body } = await client.get(path, { headers: both });
        expect([path, status, body]).toMatchObject([path, 200, { data: { license_key: key, uses: 3 } }]);
      }
      const json = await client.put('/api/v2/license/usage', {
        headers: both,
        json: { license_key: ` ${key}` },
      });
      expect([json.status, json.body]).toMatchObject([200, { data: { license_key: key, uses: 4 } }]);

      const body = `license_key=%20${key}`;
      const raw = await sendRaw(
        listenerOf(harness, name),
        [
          'PUT /api/v2/license/usage HTTP/1.1',
          'host: localhost',
          `product-secret-key: ${secret}`,
          'Content-type: Application/X-WWW-Form-Urlencoded',
          `CONTENT-LENGTH: ${body.length}`,
          'Connection: close',
          '',
          body,
        ].join('\r\n'),
      );
      expect([raw.status, JSON.parse(raw.body)]).toMatchObject([200, { data: { uses: 5 } }]);
      await agent.atRest();
      expect(harness.upstream.license(key).uses).toBe(5);
      // At startup the agent probes the upstream once.
      const asked = new Set(harness.upstream.ledger.map(({ licenseKey }) => licenseKey ?? key));
      expect(asked.difference(new Set(['LATCHKEY-PROBE']))).toEqual(new Set([key]));
    },
  );
}
