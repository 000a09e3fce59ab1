import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminToken, apiKey, limits } from '../support/app/http-app.ts';
import { serveApp, type Served } from '../support/app/http-served.ts';
import { sendRaw, type RawResponse } from '../support/network/raw-http.ts';

let served: Served;
/** A server with short timeouts, for requests that never end. */
let hasty: Served;
beforeAll(async () => {
  served = await serveApp({}, { limits, allowedHosts: ['latchkey.internal', '::5'] });
  hasty = await serveApp({}, { limits: { ...limits, headerTimeoutMs: 1_000, requestTimeoutMs: 1_200 } });
});
afterAll(async () => {
  for (const each of [served, hasty]) await each[Symbol.asyncDispose]();
});

const host = 'Host: localhost';
const bearer = `Authorization: Bearer ${adminToken}`;
const post = 'POST /admin/v1/accounts HTTP/1.1';
const json = 'Content-Type: application/json';

const longestWaitMs = 24 * 86_400_000;
const largest = {
  headerTimeoutMs: longestWaitMs,
  requestTimeoutMs: longestWaitMs,
  // Node doubles this in 32 bits; one more would allow a single header.
  headerCount: 2 ** 31,
  headerBytes: Number.MAX_SAFE_INTEGER,
  bodyBytes: Number.MAX_SAFE_INTEGER,
  parameters: Number.MAX_SAFE_INTEGER,
  connections: Number.MAX_SAFE_INTEGER,
};

/** A request of these lines, ended by an empty line. */
function lines(...given: string[]): string {
  return [...given, 'Connection: close', '', ''].join('\r\n');
}

const headers = (count: number): string[] => Array.from({ length: count }, (_, index) => `X-${index}: 1`);

describe.each(['tcp', 'socket'] as const)('over %s', (listener) => {
  const send = (bytes: string, { listeners } = served): Promise<RawResponse> =>
    sendRaw(listeners[listener], Buffer.from(bytes, 'latin1'));

  test.each<[string, string, number, string]>([
    ['no Host', lines('GET /livez HTTP/1.1'), 400, 'malformed_request'],
    ['HTTP/1.0 without Host', lines('GET /livez HTTP/1.0'), 400, 'malformed_request'],
    ['an empty Host', lines('GET /livez HTTP/1.1', 'Host:'), 400, 'malformed_request'],
    ['two Hosts', lines('GET /livez HTTP/1.1', host, host), 400, 'malformed_request'],
    ['a Host with a space', lines('GET /livez HTTP/1.1', 'Host: local host'), 400, 'malformed_request'],
    ['a Host with a user', lines('GET /livez HTTP/1.1', 'Host: a@localhost'), 400, 'malformed_request'],
    ['a Host with a path', lines('GET /livez HTTP/1.1', 'Host: localhost/x'), 400, 'malformed_request'],
    [
      'a Host with a strange port',
      lines('GET /livez HTTP/1.1', 'Host: localhost:x'),
      400,
      'malformed_request',
    ],
    ['an absolute target', lines('GET http://localhost/livez HTTP/1.1', host), 400, 'malformed_request'],
    [
      'a foreign absolute target',
      lines('GET http://evil.example/livez HTTP/1.1', host),
      400,
      'malformed_request',
    ],
    ['the target *', lines('OPTIONS * HTTP/1.1', host), 400, 'malformed_request'],
    ['CONNECT', lines('CONNECT localhost:80 HTTP/1.1', host), 400, 'malformed_request'],
    ['a fragment', lines('GET /livez#x HTTP/1.1', host), 400, 'malformed_request'],
    [
      'a byte outside of ASCII in the target',
      lines('GET /livez?\xff HTTP/1.1', host),
      400,
      'malformed_request',
    ],
    ['an undecodable path', lines('GET /livez/%zz HTTP/1.1', host), 400, 'malformed_request'],
    [
      'an undecodable path of a foreign page',
      lines('GET /%zz HTTP/1.1', host, 'Origin: x'),
      403,
      'origin_forbidden',
    ],
    ['an undecodable query', lines('GET /livez?a=%zz HTTP/1.1', host), 400, 'malformed_request'],
    ['an Origin', lines('GET /livez HTTP/1.1', host, 'Origin: null'), 403, 'origin_forbidden'],
    ['a Referer', lines('GET /livez HTTP/1.1', host, 'Referer: http://localhost/'), 403, 'origin_forbidden'],
    ['a preflight', lines('OPTIONS /api/v2/coupons HTTP/1.1', host, 'Origin: x'), 403, 'origin_forbidden'],
    [
      'two content types',
      lines(post, host, bearer, json, json, 'Content-Length: 2') + '{}',
      400,
      'malformed_request',
    ],
    [
      'two different tokens',
      lines('GET /livez HTTP/1.1', host, bearer, `${bearer}x`),
      400,
      'malformed_request',
    ],
    [
      'two different API keys',
      lines('GET /livez HTTP/1.1', host, `service-api-key: ${apiKey}`, `Service-Api-Key: ${apiKey}x`),
      400,
      'malformed_request',
    ],
    [
      'a body on GET',
      lines('GET /livez HTTP/1.1', host, 'Content-Length: 2') + '{}',
      400,
      'malformed_request',
    ],
    [
      'a chunked body on GET',
      lines('GET /livez HTTP/1.1', host, 'Transfer-Encoding: chunked') + '0\r\n\r\n',
      400,
      'malformed_request',
    ],
    [
      'too many query parameters',
      lines(`GET /livez?${Array.from({ length: 33 }, (_, index) => `p${index}=1`).join('&')} HTTP/1.1`, host),
      400,
      'malformed_request',
    ],
    ['a repeated query parameter', lines('GET /livez?a=1&%61=2 HTTP/1.1', host), 400, 'duplicate_parameter'],
    ['39 more headers', lines('GET /livez HTTP/1.1', host, ...headers(39)), 431, 'headers_too_large'],
    ['400 more headers', lines('GET /livez HTTP/1.1', host, ...headers(400)), 431, 'headers_too_large'],
    [
      'a header of 9 KB',
      lines('GET /livez HTTP/1.1', host, `X: ${'a'.repeat(9_000)}`),
      431,
      'headers_too_large',
    ],
    ['a target of 9 KB', lines(`GET /${'a'.repeat(9_000)} HTTP/1.1`, host), 431, 'headers_too_large'],
    ['a folded header', lines('GET /livez HTTP/1.1', host, 'X: a', ' b'), 400, 'malformed_request'],
    ['a space before the colon', lines('GET /livez HTTP/1.1', 'Host : localhost'), 400, 'malformed_request'],
    ['a NUL in a header', lines('GET /livez HTTP/1.1', host, 'X: a\0b'), 400, 'malformed_request'],
    ['bare line feeds', 'GET /livez HTTP/1.1\nHost: localhost\n\n', 400, 'malformed_request'],
    ['a negative length', lines(post, host, 'Content-Length: -1'), 400, 'malformed_request'],
    [
      'two lengths',
      lines(post, host, 'Content-Length: 1', 'Content-Length: 2') + 'a',
      400,
      'malformed_request',
    ],
    [
      'a length together with chunks',
      lines(post, host, bearer, json, 'Content-Length: 5', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
      400,
      'malformed_request',
    ],
    [
      'a malformed chunk',
      lines(post, host, bearer, json, 'Transfer-Encoding: chunked') + 'ZZ\r\n',
      400,
      'malformed_request',
    ],
    [
      'a Content-Length that is too large',
      lines(post, host, bearer, json, 'Content-Length: 20000') + 'a'.repeat(20_000),
      413,
      'body_too_large',
    ],
    [
      'a chunked body that is too large',
      lines(post, host, bearer, json, 'Transfer-Encoding: chunked') +
        `4e20\r\n${'a'.repeat(20_000)}\r\n0\r\n\r\n`,
      413,
      'body_too_large',
    ],
    ['a head that never ends', 'GET /livez HTTP/1.1\r\nHo', 408, 'request_timeout'],
    [
      'a body that never ends',
      lines(post, host, bearer, json, 'Content-Length: 9') + '{',
      408,
      'request_timeout',
    ],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'malformed_request'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'malformed_request'],
    ['bytes that are not HTTP', 'HELLO\r\n\r\n', 400, 'malformed_request'],
    ['an unknown method', lines('PROPFIND /livez HTTP/1.1', host), 405, 'method_not_allowed'],
    ['TRACE', lines('TRACE /livez HTTP/1.1', host), 405, 'method_not_allowed'],
    ['a path with ..', lines('GET /../livez HTTP/1.1', host), 404, 'route_not_found'],
    [
      'a path parameter of 2 KB',
      lines(`GET /api/v2/coupons/${'1'.repeat(2_000)} HTTP/1.1`, host, bearer),
      404,
      'coupon_not_found',
    ],
  ])('%s is refused as documented', async (_, bytes, status, code) => {
    const answer = await send(bytes, status === 408 ? hasty : served);
    expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
    expect(JSON.parse(answer.body)).toMatchObject({ status, code });
    const names = Object.keys(answer.headers);
    expect(names.filter((name) => name.startsWith('access-control-'))).toEqual([]);
    expect((await send(lines('GET /livez HTTP/1.1', host))).status).toBe(200);
  });

  test.each([
    lines('GET /livez HTTP/1.1', host, ...headers(38)),
    lines('GET /livez HTTP/1.0', host),
    lines('GET /livez HTTP/1.1', 'Host: 127.0.0.1:8787'),
    lines('GET /livez HTTP/1.1', 'Host: LOCALHOST'),
    lines('GET /livez HTTP/1.1', 'Host: [::1]:80'),
    lines('GET /livez HTTP/1.1', 'Host: latchkey.internal'),
    lines('GET /livez HTTP/1.1', 'Host: localhost.'),
    lines('GET /livez HTTP/1.1', 'Host: latchkey.internal.:8787'),
    lines('GET /livez HTTP/1.1', 'Host: [::5]'),
    lines('GET /livez?a=%E2%82%AC+x&b&c= HTTP/1.1', host),
    lines('GET /livez?&a=1&&b=2& HTTP/1.1', host),
    lines('GET /livez HTTP/1.1', host, 'Content-Length: 0'),
    lines('GET /livez HTTP/1.1', host, 'Expect: something'),
    lines('HEAD /livez HTTP/1.1', host),
  ])('a valid request is answered: %j', async (bytes) => {
    expect((await send(bytes)).status).toBe(200);
  });

  test('the largest limits of the configuration refuse no valid request', async () => {
    await using wide = await serveApp({}, { limits: largest });
    const answer = await send(lines('GET /livez HTTP/1.1', host, ...headers(100)), wide);
    expect(answer.status).toBe(200);
  });

  test.each([
    'evil.example',
    'evil.example.',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '10.0.0.1',
    '[::2]',
    '0.0.0.0',
  ])('a request with the Host header %s is refused over TCP only', async (name) => {
    const answer = await send(lines('GET /livez HTTP/1.1', `Host: ${name}`));
    // No web page can open a Unix socket, and clients of a socket send any host name.
    const expected = listener === 'socket' ? { status: 'ok' } : { status: 403, code: 'host_forbidden' };
    expect(JSON.parse(answer.body)).toMatchObject(expected);
  });
});
