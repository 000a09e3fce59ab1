import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeOfProject } from '../support/app/engine.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient, sendRaw, type HttpClient, type Listener } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { socketPath } from '../support/network/socket-path.ts';

/** The bytes of a request, and the documented status and code. */
type Case = readonly [what: string, bytes: string, status: number, code: string];

const secret = 'lk_prod_of_the_editor';
const host = 'Host: localhost';
const ours = `product-secret-key: ${secret}`;
const form = 'Content-Type: application/x-www-form-urlencoded';
const json = 'Content-Type: application/json';
const use = 'PUT /api/v2/license/usage HTTP/1.1';
const live = 'GET /livez HTTP/1.1';

/** A request of these lines that asks to close the connection. */
function head(...lines: string[]): string {
  return [...lines, 'Connection: close', '', ''].join('\r\n');
}

/** A use of a key with this body and its Content-Length. */
function body(text: string, ...lines: string[]): string {
  return head(use, host, ours, ...lines, `Content-Length: ${Buffer.byteLength(text, 'latin1')}`) + text;
}

/** A use of a key with a chunked body, written as given. */
function chunked(text: string, ...lines: string[]): string {
  return head(use, host, ours, form, ...lines, 'Transfer-Encoding: chunked') + text;
}

function all(status: number, code: string, requests: Readonly<Record<string, string>>): readonly Case[] {
  return Object.entries(requests).map(([what, bytes]) => [what, bytes, status, code]);
}

/** One case for each of some texts. */
function forEach(
  texts: readonly string[],
  what: string,
  bytes: (text: string) => string,
): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => [`${what} ${JSON.stringify(text.slice(0, 40))}`, bytes(text)]),
  );
}

const noHttp = all(400, 'malformed_request', {
  'a TLS greeting': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'an SSH banner': 'SSH-2.0-OpenSSH_9.6\r\n',
  SMTP: 'EHLO localhost\r\n',
  Redis: '*1\r\n$4\r\nPING\r\n',
  SOCKS: '\x05\x01\x00\r\n',
  'the PROXY protocol': 'PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n' + head(live, host),
  zeros: '\0'.repeat(64),
  'bytes without an end': '\xff\xfe\xfd'.repeat(100),
  'JSON alone': '{"jsonrpc":"2.0","method":"verify"}\r\n\r\n',
  'bare line feeds': 'GET /livez HTTP/1.1\nHost: localhost\n\n',
  'bare carriage returns': 'GET /livez HTTP/1.1\rHost: localhost\r\r',
});

const requestLines = all(400, 'malformed_request', {
  'no target': 'GET\r\n\r\n',
  'no version': 'GET /livez\r\nHost: localhost\r\n\r\n',
  ...forEach(
    [
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/3',
      'HTTP/0.9',
      'HTTP/1.',
      'HTTP/11',
      'HTTPS/1.1',
      'http/1.1',
      'HTTP/1.1 x',
    ],
    'the version',
    (version) => head(`GET /livez ${version}`, host),
  ),
  ...forEach(['get', 'BREW', 'G ET', 'GET\t', '', 'GÉT'], 'the method', (method) =>
    head(`${method} /livez HTTP/1.1`, host),
  ),
  ...forEach(
    [
      '*',
      'livez',
      'localhost:80',
      'http://localhost/livez',
      'https://localhost/livez',
      'http://evil.example/livez',
      'file:///etc/passwd',
      '/livez#part',
      '/livez\\..',
      '/livez?\xe9',
      '/li\tvez',
      '/li\0vez',
    ].filter((target) => !target.includes('\\')),
    'the target',
    (target) => head(`GET ${target} HTTP/1.1`, host),
  ),
  CONNECT: head('CONNECT localhost:443 HTTP/1.1', host),
});

const paths = all(404, 'route_not_found', {
  ...forEach(
    [
      '/',
      '/LIVEZ',
      '/livez;a=b',
      '/livez%00',
      '/livez%0d%0aX-Y:1',
      '/../livez',
      '/%2e%2e/livez',
      '/api/v2/license/verify/../../../../livez',
      '/api/v2',
      '/api/v3/coupons',
      '/admin/v1/',
      '/.git/config',
      '/__proto__',
      '/constructor',
      `/${'a/'.repeat(500)}`,
    ],
    'the path',
    (path) => head(`GET ${path} HTTP/1.1`, host, ours),
  ),
});

const methods = all(
  405,
  'method_not_allowed',
  forEach(
    ['TRACE', 'PATCH', 'DELETE', 'PROPFIND', 'OPTIONS', 'PURGE', 'M-SEARCH', 'LOCK'],
    'the method',
    (method) => head(`${method} /livez HTTP/1.1`, host),
  ),
);

const queries: readonly Case[] = [
  ...all(400, 'malformed_request', {
    ...forEach(['%zz', '%', '%ff', '%C0%80', '%ED%A0%80', '%F4%90%80%80'], 'the query', (text) =>
      head(`GET /livez?a=${text} HTTP/1.1`, host),
    ),
    '33 parameters': head(
      `GET /livez?${Array.from({ length: 33 }, (_, index) => `p${index}=1`).join('&')} HTTP/1.1`,
      host,
    ),
    'a path that cannot be decoded': head('GET /livez/%zz HTTP/1.1', host),
  }),
  ...all(
    400,
    'duplicate_parameter',
    forEach(['a=1&a=2', 'a=1&%61=1', 'a=&a=', '__proto__=1&__proto__=2', '=1&=2'], 'the query', (text) =>
      head(`GET /livez?${text} HTTP/1.1`, host),
    ),
  ),
];

const hosts = all(400, 'malformed_request', {
  'no Host': head(live),
  'HTTP/1.0 without Host': head('GET /livez HTTP/1.0'),
  'two Hosts': head(live, host, host),
  'two Hosts in different letter case': head(live, host, 'HOST: localhost'),
  ...forEach(
    [
      '',
      'local host',
      'a@localhost',
      'localhost/x',
      'localhost:x',
      'localhost:',
      'localhost:123456',
      '[::1',
      '::1',
      'localhost,evil.example',
      '*',
      '.localhost',
      'localhost..',
      'local\x7fhost',
      'lòcalhost',
      '[::1]x',
      'localhost?',
    ],
    'the Host',
    (name) => head(live, `Host: ${name}`),
  ),
});

const headerLines: readonly Case[] = [
  ...all(400, 'malformed_request', {
    'a folded header': head(live, host, 'X: a', ' b'),
    'a space before the colon': head(live, 'Host : localhost'),
    'a header with a leading space': head(live, ' X: 1', host),
    'a header without a colon': head(live, host, 'nonsense'),
    'a header without a name': head(live, host, ': x'),
    'a header name with forbidden characters': head(live, host, 'X(y): 1'),
    'a NUL in a header': head(live, host, 'X: a\0b'),
    'a line feed in a header': head(live, host, 'X: a\nY: b'),
    'a control character in a header': head(live, host, 'X: a\x01b'),
    'two secrets': head(use, host, ours, `${ours}x`),
    'two secrets under header names of different letter case': head(
      use,
      host,
      ours,
      `Product-Secret-Key: ${secret}x`,
    ),
    'two tokens': head(live, host, 'Authorization: Bearer a', 'Authorization: Bearer b'),
    'two API keys': head(live, host, 'service-api-key: a', 'service-api-key: b'),
    'a token together with a secret': head(use, host, ours, 'Authorization: Bearer a', form),
    'two content types': body('license_key=KEY', form, form),
    'two different content types': body('license_key=KEY', form, json),
    'a body on GET': head(live, host, 'Content-Length: 2') + '{}',
    'a chunked body on GET': head(live, host, 'Transfer-Encoding: chunked') + '0\r\n\r\n',
    'a body on HEAD': head('HEAD /livez HTTP/1.1', host, 'Content-Length: 2') + '{}',
  }),
  ...all(403, 'origin_forbidden', {
    ...forEach(
      [
        'null',
        '',
        'http://localhost:8787',
        'http://127.0.0.1',
        'https://evil.example',
        'chrome-extension://x',
      ],
      'the Origin',
      (origin) => head(live, host, `Origin: ${origin}`),
    ),
    'a Referer': head(live, host, 'Referer: http://localhost/'),
    'an Origin on a change': body('license_key=KEY', form, 'Origin: https://evil.example'),
    'a preflight': head(
      'OPTIONS /api/v2/coupons HTTP/1.1',
      host,
      'Origin: x',
      'Access-Control-Request-Method: PUT',
    ),
  }),
  ...all(431, 'headers_too_large', {
    '40 more headers': head(live, host, ...Array.from({ length: 40 }, (_, index) => `X-${index}: 1`)),
    '1000 more headers': head(live, host, ...Array.from({ length: 1_000 }, (_, index) => `X-${index}:`)),
    'a header of 9 KB': head(live, host, `X: ${'a'.repeat(9_000)}`),
    'a header name of 9 KB': head(live, host, `${'a'.repeat(9_000)}: x`),
    'a target of 9 KB': head(`GET /${'a'.repeat(9_000)} HTTP/1.1`, host),
    'a line of 64 KB without an end': 'GET /'.padEnd(65_536, 'a'),
  }),
];

const framing: readonly Case[] = [
  ...all(400, 'malformed_request', {
    ...forEach(
      ['-1', '+5', '0x5', '5 5', '5,5', '1e1', 'abc', '18446744073709551616'],
      'the length',
      (length) => head(use, host, ours, form, `Content-Length: ${length}`),
    ),
    'two lengths': head(use, host, ours, form, 'Content-Length: 1', 'Content-Length: 2') + 'ab',
    'the same length twice': head(use, host, ours, form, 'Content-Length: 1', 'Content-Length: 1') + 'a',
    'a length before chunks':
      head(use, host, ours, form, 'Content-Length: 5', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
    'chunks before a length':
      head(use, host, ours, form, 'Transfer-Encoding: chunked', 'Content-Length: 5') + '0\r\n\r\n',
    ...forEach(
      ['identity', 'gzip', 'xchunked', 'chunked, identity', 'chunked, gzip', 'chunked, chunked'],
      'the transfer encoding',
      (encoding) => head(use, host, ours, form, `Transfer-Encoding: ${encoding}`),
    ),
    ...forEach(
      [
        'ZZ\r\n',
        '-1\r\n',
        '0x1\r\na\r\n',
        '\r\n',
        'fffffffffffffffff\r\n',
        '1\r\nab\r\n',
        '1 \n',
        '1;a=\0\r\n',
      ],
      'the chunk',
      (chunk) => chunked(chunk),
    ),
    'a malformed trailer': chunked('1\r\na\r\n0\r\nnonsense\r\n\r\n'),
  }),
  ...all(413, 'body_too_large', {
    'a body of 20 KB': body('a'.repeat(20_000), form),
    'a body with a Content-Length of 1 TB':
      head(use, host, ours, form, 'Content-Length: 1099511627776') + 'a',
    'a chunked body of 20 KB': chunked(`4e20\r\n${'a'.repeat(20_000)}\r\n0\r\n\r\n`),
    'a body of many small chunks': chunked(`${'1\r\na\r\n'.repeat(17_000)}0\r\n\r\n`),
  }),
];

const bodies: readonly Case[] = [
  ...all(415, 'unsupported_media_type', {
    'no content type': body('license_key=KEY'),
    ...forEach(
      [
        'text/plain',
        'multipart/form-data; boundary=x',
        'application/xml',
        'nonsense',
        'application/json; charset=utf-16',
        'application/json, text/plain',
        '*/*',
        'application/jsonp',
      ],
      'the content type',
      (type) => body('{}', `Content-Type: ${type}`),
    ),
    ...forEach(['gzip', 'br', 'identity', 'x'], 'the content encoding', (encoding) =>
      body('{}', json, `Content-Encoding: ${encoding}`),
    ),
    ...forEach(
      ['gzip, chunked', 'deflate, chunked', 'identity, chunked', 'gzip\r\nTransfer-Encoding: chunked'],
      'the transfer coding',
      (coding) =>
        head(use, host, ours, form, `Transfer-Encoding: ${coding}`) + 'f\r\nlicense_key=KEY\r\n0\r\n\r\n',
    ),
  }),
  ...all(400, 'malformed_body', {
    ...forEach(
      [
        '{',
        '[]',
        'null',
        '1',
        '"x"',
        '{"a":1,}',
        "{'a':1}",
        '{"a":NaN}',
        '{a:1}',
        '{}{}',
        '\xef\xbb\xbf{',
        '{"a":"\x01"}',
        '\xff\xfe{\0}\0',
        '{"a":"\xc0\x80"}',
        '['.repeat(15_000),
        '{"a":'.repeat(3_000),
      ],
      'the JSON',
      (text) => body(text, json),
    ),
    ...forEach(['a=%zz', 'a=%', 'a=%ff%fe', 'a=\xff', 'license_key=%ED%A0%80'], 'the form', (text) =>
      body(text, form),
    ),
  }),
  ...all(400, 'duplicate_parameter', {
    ...forEach(['license_key=A&license_key=B', 'a=1&%61=1', 'a&a'], 'the form', (text) => body(text, form)),
    ...forEach(
      [
        '{"license_key":"A","license_key":"B"}',
        String.raw`{"a":1,"\u0061":2}`,
        '{"__proto__":1,"__proto__":2}',
      ],
      'the JSON',
      (text) => body(text, json),
    ),
  }),
  ...all(400, 'malformed_request', {
    'a form of 33 parameters': body(Array.from({ length: 33 }, (_, index) => `p${index}=1`).join('&'), form),
    'JSON of 33 members': body(
      JSON.stringify(Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`p${index}`, 1]))),
      json,
    ),
  }),
  ...all(422, 'parameters_invalid', {
    'an empty form': body('', form),
    'a form without names and values': body('&&=&', form),
    ...forEach(
      [
        '{}',
        '{"license_key":null}',
        '{"license_key":1}',
        '{"license_key":{}}',
        '{"license_key":["KEY"]}',
        '{"license_key":true}',
        String.raw`{"license_key":"\u0000"}`,
        String.raw`{"license_key":"\ud800"}`,
        '{"__proto__":{"license_key":"KEY"}}',
        '{"constructor":{"prototype":{"license_key":"KEY"}}}',
      ],
      'the JSON',
      (text) => body(text, json),
    ),
    ...forEach(
      ['license_key=%00', 'license_key=+', 'license_key[]=KEY', 'LICENSE_KEY=KEY'],
      'the form',
      (text) => body(text, form),
    ),
  }),
  ...all(404, 'license_not_found', {
    'a key of 15 KB': body(`license_key=${'K'.repeat(15_000)}`, form),
    ...forEach(
      ["' OR 1=1 --", '../../etc/passwd', '${jndi:ldap://x}', '<script>', '%', '_', '\\'],
      'the key',
      (key) => body(`license_key=${encodeURIComponent(key)}`, form),
    ),
  }),
];

const credentials: readonly Case[] = [
  ...all(401, 'credentials_missing', {
    'no credential': head('GET /statusz HTTP/1.1', host),
    'an empty credential': head('GET /statusz HTTP/1.1', host, 'service-api-key:'),
    ...forEach(
      ['Basic eDp5', 'Bearer', 'Bearer ', 'bearer a b', 'Bearer a, Bearer b', 'Token a', 'Digest x'],
      'the authorization',
      (value) => head('GET /statusz HTTP/1.1', host, `Authorization: ${value}`),
    ),
  }),
  ...all(401, 'credentials_invalid', {
    ...forEach(
      ['wrong', `${secret}x`, secret.toUpperCase(), '\xe9\xe8', "' OR '1'='1", '*', 'x'.repeat(7_000)],
      'the secret',
      (value) =>
        head('GET /api/v2/license/verify?license_key=KEY HTTP/1.1', host, `product-secret-key: ${value}`),
    ),
    'a product’s secret as an API key': head(
      'GET /api/v2/coupons HTTP/1.1',
      host,
      `service-api-key: ${secret}`,
    ),
    'a product’s secret as a token': head('GET /statusz HTTP/1.1', host, `Authorization: Bearer ${secret}`),
  }),
  ...all(403, 'scope_missing', {
    'a product’s secret for the catalogue': head('GET /admin/v1/products HTTP/1.1', host, ours),
    'a product’s secret for the status': head('GET /statusz HTTP/1.1', host, ours),
  }),
  ...all(
    400,
    'idempotency_key_malformed',
    forEach(
      ['', '"', '""', '"a', 'a b', 'é', 'a, b'.padEnd(10), 'k'.repeat(256), '"a"b'],
      'the idempotency key',
      (key) => body('license_key=KEY', form, `Idempotency-Key: ${key}`),
    ),
  ),
  ...all(400, 'idempotency_key_malformed', {
    'two idempotency keys': body('license_key=KEY', form, 'Idempotency-Key: a', 'Idempotency-Key: b'),
  }),
];

const slow = all(408, 'request_timeout', {
  'nothing at all': '',
  'a head that never ends': 'GET /livez HTTP/1.1\r\nHo',
  'a body that never arrives': head(use, host, ours, form, 'Content-Length: 9'),
  'a body that never ends': head(use, host, ours, form, 'Content-Length: 9') + 'li',
  'chunks that never end': chunked('1\r\na\r\n'),
});

const cases = [
  ...noHttp,
  ...requestLines,
  ...paths,
  ...methods,
  ...queries,
  ...hosts,
  ...headerLines,
  ...framing,
  ...bodies,
  ...credentials,
];

test('there are at least 150 different hostile requests', () => {
  expect(new Set([...cases, ...slow].map(([, bytes]) => bytes)).size).toBe(cases.length + slow.length);
  expect(cases.length).toBeGreaterThanOrEqual(150);
});

type ListenerName = 'tcp' | 'socket';

/** A daemon with a license, and clients for its listeners. */
interface Attacked extends AsyncDisposable {
  readonly daemon: DaemonProcess;
  readonly listeners: Readonly<Record<ListenerName, Listener>>;
  readonly http: Readonly<Record<ListenerName, HttpClient>>;
}

async function startAttacked(limits: object): Promise<Attacked> {
  await using starting = new AsyncDisposableStack();
  const { path } = starting.use(temporaryDirectory());
  const configuration = {
    listen: { tcp: '127.0.0.1:0', socket: socketPath(path, 'l.sock') },
    limits: { failed_rate: 1_000_000, ...limits },
    ...storeOfProject(),
  };
  const daemon = starting.use(await startDaemonProcess(path, configuration));
  const listeners = { tcp: { tcp: daemon.tcp }, socket: { socket: daemon.socket ?? '' } };
  const http = {
    tcp: starting.use(httpClient(listeners.tcp)),
    socket: starting.use(httpClient(listeners.socket)),
  };
  const headers = {
    authorization: `Bearer ${readFileSync(join(path, 'state', 'admin.token'), 'utf8').trim()}`,
  };
  const product = { name: 'Editor', product_key: 'EDITOR', secret };
  await http.tcp.post('/admin/v1/products', { headers, json: product });
  const purchase = { product_key: 'EDITOR', buyer_email: 'b@example.com', license_key: 'KEY' };
  await http.tcp.post('/admin/v1/purchases', { headers, json: purchase });
  const owned = starting.move();
  return { daemon, listeners, http, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

describe('a daemon on both of its listeners', () => {
  const opened = new AsyncDisposableStack();
  let patient: Attacked;
  /** A daemon with short timeouts, for requests that never end. */
  let hasty: Attacked;

  beforeAll(async () => {
    patient = opened.use(await startAttacked({}));
    hasty = opened.use(await startAttacked({ header_timeout: '2s', request_timeout: '3s' }));
  });
  afterAll(() => opened.disposeAsync());

  /** The response to the bytes, and the response to a valid request afterwards. */
  async function send(
    { http, listeners }: Attacked,
    name: ListenerName,
    bytes: string,
  ): Promise<{ refusal: unknown[]; next: unknown[] }> {
    const { status, headers, body: text } = await sendRaw(listeners[name], Buffer.from(bytes, 'latin1'));
    const { code } = text.startsWith('{') ? (JSON.parse(text) as { code: string }) : { code: null };
    const cors = Object.keys(headers).filter((header) => header.startsWith('access-control-'));
    const verify = '/api/v2/license/verify?license_key=KEY';
    const next = await http[name].get(verify, { headers: { 'product-secret-key': secret } });
    const { uses } = (next.body as { data: { uses: unknown } }).data;
    return { refusal: [status, code, ...cors], next: [next.status, uses] };
  }

  describe.each(['tcp', 'socket'] as const)('over %s', (name) => {
    test.each(cases)('the daemon refuses %s', async (_, bytes, status, code) => {
      // A response to HEAD has no body.
      const refusal = [status, bytes.startsWith('HEAD') ? null : code];
      expect(await send(patient, name, bytes)).toEqual({ refusal, next: [200, 0] });
    });
    test.concurrent.each(slow)(
      'the daemon refuses a slow request at its timeout: %s',
      async (_, bytes, status, code) => {
        expect(await send(hasty, name, bytes)).toEqual({ refusal: [status, code], next: [200, 0] });
      },
    );
  });

  test.each([
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '10.0.0.1',
    '0.0.0.0',
    '[::2]',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
  ])('over TCP the daemon does not accept the host name %s', async (name) => {
    const { refusal } = await send(patient, 'tcp', head(live, `Host: ${name}`));
    expect(refusal).toEqual([403, 'host_forbidden']);
  });

  test('the daemon refuses a body that is too large, also with Expect: 100-continue', async () => {
    const bytes = body('a'.repeat(20_000), form, 'Expect: 100-continue');
    expect((await sendRaw(patient.listeners.tcp, bytes)).raw).toContain('HTTP/1.1 413 ');
  });

  test('the daemon refuses an invalid request after a valid request on the same connection', async () => {
    const good = `GET /api/v2/license/verify?license_key=KEY HTTP/1.1\r\n${host}\r\n${ours}\r\n\r\n`;
    const change = 'PUT /api/v2/license/disable HTTP/1.1';
    const text = 'license_key=NONE';
    const slower = `${[change, host, ours, form, `Content-Length: ${text.length}`].join('\r\n')}\r\n\r\n${text}`;
    const broken = `${use}\r\n${host}\r\n${ours}\r\n${form}\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n`;
    for (const [{ listeners }, bytes, expected] of [
      [patient, `${good}HELLO\r\n\r\n`, ['200', '400']],
      [patient, `${slower}${good}HELLO\r\n\r\n`, ['404', '200', '400']],
      [patient, `${slower}${broken}`, ['404', '400']],
      [hasty, `${good}${slower}GET`, ['200', '404', '408']],
    ] as const) {
      const { raw } = await sendRaw(listeners.tcp, bytes);
      expect([...raw.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(expected);
    }
  });

  test('the daemon has logged no error and has not crashed', async () => {
    for (const { daemon, http } of [patient, hasty]) {
      expect(daemon.complaints).toBe('');
      expect(daemon.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
      expect((await http.tcp.get('/livez')).status).toBe(200);
    }
  });
});
