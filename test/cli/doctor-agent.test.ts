import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { makeCertificate } from '../support/network/made-certificate.ts';
import { listen } from '../support/network/listener.ts';
import { latchkey } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const secret = 'product-secret-of-the-test';
const nowhere = 'http://127.0.0.1:9';

/** What the doctor finds about an agent, a line for each: its level, what it is, and what to do. */
async function examine(directory: string, upstream: object, more: object = {}): Promise<readonly string[]> {
  const file = join(directory, 'agent.yaml');
  const configuration = {
    state_dir: join(directory, 'state'),
    listen: { tcp: '127.0.0.1:0' },
    upstream,
    products: [{ key: 'RGsF', secret }],
    ...more,
  };
  writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
  return (await latchkey('doctor', '--config', file)).out.split('\n');
}

/** An upstream that answers every request so, until the test ends. */
async function answering(answer: RequestListener): Promise<string> {
  const listener = await listen(createServer(answer));
  onTestFinished(() => listener[Symbol.asyncDispose]());
  return listener.url;
}

const json = { 'content-type': 'application/json' };

test.each<[mode: number, line: (file: string) => string]>([
  [0o600, (file) => `ok    ${file} can be read only by its owner`],
  [0o640, (file) => `warn  ${file} can be read by its group  →  chmod 0600 ${file}`],
  [0o604, (file) => `fail  ${file} can be read by every user of this machine  →  chmod 0600 ${file}`],
])('doctor reports who can read a secret file with mode %o', async (mode, line) => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'rgsf.secret');
  writeFileSync(file, secret);
  chmodSync(file, mode);
  const products = [{ key: 'RGsF', secret_file: file }];
  expect(await examine(directory.path, { base_url: nowhere }, { products })).toContain(line(file));
});

test.each([
  ['agrees', 10_000, /^ok {4}the clock agrees with that of the upstream$/],
  ['is a minute ahead', -60_000, /^warn {2}the clock is 60 s ahead of that of the upstream {2}→ /],
  ['is a minute behind', 60_000, /^warn {2}the clock is 60 s behind that of the upstream {2}→ /],
  [
    'is an hour behind',
    3_600_000,
    /^fail {2}this machine and the store differ by 60 minutes; one of the two is wrong {2}→ /,
  ],
  ['cannot be compared', null, /^warn {2}the upstream sends no Date header {2}→ {2}check the clock/],
])('doctor reports a clock that %s', async (_, aheadMs, line) => {
  // Both clocks stand still, at a whole second: the upstream tells no parts of one.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) });
  onTestFinished(() => void vi.useRealTimers());
  await using directory = temporaryDirectory();
  const url = await answering((__, response) => {
    response.sendDate = false;
    const date = aheadMs === null ? {} : { date: new Date(Date.now() + aheadMs).toUTCString() };
    response.writeHead(401, { ...json, ...date }).end('{"error":"who?"}');
  });
  const found = await examine(directory.path, { base_url: url });
  expect(found.filter((each) => /clock|the time/.test(each))).toEqual([expect.stringMatching(line)]);
});

test.each<[what: string, status: number, body: string, line: RegExp]>([
  [
    'asks to be left alone',
    429,
    '{"error":"slow down"}',
    /^warn {2}the secret of product RGsF: HTTP 429.* {2}→ {2}try again later$/,
  ],
  [
    'cannot ask its own upstream, as an agent says,',
    503,
    '{"detail":"the upstream is away"}',
    /^warn {2}the secret of product RGsF: HTTP 503.* {2}→ {2}try again later: the response does not show whether it is accepted$/,
  ],
  [
    'fails',
    500,
    '{"error":"oops"}',
    /^fail {2}the secret of product RGsF cannot be checked: the store itself fails: HTTP 500.* {2}→ {2}nothing to do here: changes wait until the store works again$/,
  ],
  [
    'knows a license key that nobody has',
    200,
    '{"data":{"enabled":true,"product_link":"RGsF","license_key":"KEY","buyer_email":"a@example.com","uses":0,"date":"2026-01-01T00:00:00Z"}}',
    /^fail {2}the secret of product RGsF: the upstream knows a license key that was made up {2}→ /,
  ],
])('doctor reports an upstream that %s', async (_, status, body, line) => {
  await using directory = temporaryDirectory();
  const url = await answering(({ headers, url: asked = '' }, response) => {
    const isCredited = headers['product-secret-key'] === secret;
    const key = new URL(asked, nowhere).searchParams.get('license_key') ?? '';
    const own = body.replace('"KEY"', JSON.stringify(key));
    response.writeHead(isCredited ? status : 401, json).end(isCredited ? own : '{"error":"who?"}');
  });
  const found = await examine(directory.path, { base_url: url });
  expect(found.filter((each) => each.includes('the secret of'))).toEqual([expect.stringMatching(line)]);
});

test.each([500, 502, 503, 504])(
  'doctor says that the store itself fails if it answers everything with HTTP %i',
  async (status) => {
    await using directory = temporaryDirectory();
    const url = await answering((_, response) => response.writeHead(status).end('<h1>Oops</h1>'));
    const found = await examine(directory.path, { base_url: url });
    expect(found.filter((each) => each.startsWith('fail'))).toEqual([
      `fail  the store at ${url} itself fails: HTTP ${status}  →  nothing to do here: changes wait until the store works again`,
    ]);
  },
);

test('doctor reports an agent without products or an API key', async () => {
  await using directory = temporaryDirectory();
  const url = await answering((_, response) => response.writeHead(401, json).end('{"error":"who?"}'));
  const found = await examine(directory.path, { base_url: url }, { products: [] });
  expect(found).toContain('warn  no product is configured  →  list the products under products');
  expect(found).toContain('ok    no API key is configured: coupons are not served');
});

test('doctor prints when the certificate of upstream.ca_file ends', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'ca.pem');
  const levelAt = async (now: number): Promise<string | undefined> => {
    writeFileSync(file, (await makeCertificate(['localhost'], { days: 2, now })).authority);
    const found = await examine(directory.path, { base_url: 'https://127.0.0.1:9', ca_file: file });
    return found.find((line) => line.includes(file))?.replace(/ on .*| until .*/, '');
  };
  expect(await levelAt(Date.now())).toBe(`ok    ${file} is a certificate, valid`);
  expect(await levelAt(Date.now() - 3 * 86_400_000)).toBe(`fail  ${file} expired`);
});

test.each<[environment: Record<string, string>, upstream: object, proxied: string | null]>([
  [{}, { proxy: 'http://127.0.0.1:9' }, 'upstream.proxy'],
  [{ HTTP_PROXY: 'http://ada:hush@127.0.0.1:9' }, {}, 'HTTP_PROXY'],
  [{ HTTPS_PROXY: 'http://127.0.0.1:9' }, {}, null],
  [{ http_proxy: 'http://127.0.0.1:9', NO_PROXY: 'a.example, store.invalid' }, {}, null],
  [{ http_proxy: 'http://127.0.0.1:9', NO_PROXY: '.invalid' }, {}, null],
  [{ HTTP_PROXY: 'http://127.0.0.1:9', no_proxy: '*' }, {}, null],
  [{ HTTP_PROXY: 'http://127.0.0.1:9' }, { base_url: 'http://127.0.0.1:9' }, null],
])('doctor names the proxy on the way to the upstream: %j, %j', async (environment, upstream, proxied) => {
  await using directory = temporaryDirectory();
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']) {
    vi.stubEnv(name.toLowerCase(), undefined);
    vi.stubEnv(name, undefined);
  }
  // Afterwards, because Windows ignores the case of a name.
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const found = await examine(directory.path, { base_url: 'http://store.invalid', ...upstream });
  const source = proxied ?? '';
  const told = `ok    connections to the upstream go through the proxy http://127.0.0.1:9 (${source})`;
  expect(found.filter((line) => line.includes('through the proxy'))).toEqual(proxied === null ? [] : [told]);
});
