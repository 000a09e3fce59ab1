import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { dialects } from '../../support/stores/dialects.ts';
import { adminToken, authorityStatus, limits, silentMetrics } from '../../support/app/http-app.ts';
import { serveApp, type Served } from '../../support/app/http-served.ts';
import { CallerConnection } from '../../support/network/caller-connection.ts';
import { openSocket } from '../../support/network/kept-connection.ts';
import { httpClient, sendRaw } from '../../support/network/raw-http.ts';

const counted: number[] = [];
let served: Served;
/** A server with short timeouts, for requests that never end. */
let hasty: Served;
beforeAll(async () => {
  const metrics = {
    ...silentMetrics,
    countUnrouted: (status: number) => void counted.push(status),
  };
  served = await serveApp({ metrics }, { limits });
  hasty = await serveApp(
    { metrics },
    { limits: { ...limits, headerTimeoutMs: 1_000, requestTimeoutMs: 1_200 } },
  );
});
afterAll(async () => {
  for (const each of [served, hasty]) await each[Symbol.asyncDispose]();
});
beforeEach(() => {
  counted.length = 0;
  for (const { lines } of [served, hasty]) lines.length = 0;
});

const large = `GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(9_000)}\r\n\r\n`;
const post = `POST /admin/v1/accounts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\nContent-Type: application/json\r\n`;
const twoLengths = `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;

describe.each(['tcp', 'socket'] as const)('over %s', (listener) => {
  test.each<[string, string, number, string]>([
    ['bytes that are not HTTP', 'HELLO\r\n\r\n', 400, 'malformed_request'],
    ['headers that are too large', large, 431, 'headers_too_large'],
    ['a head that never ends', 'GET /livez HTTP/1.1\r\nHo', 408, 'request_timeout'],
    ['CONNECT', 'CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'malformed_request'],
    ['another version of HTTP', 'GET /livez HTTP/1.2\r\nHost: localhost\r\n\r\n', 400, 'malformed_request'],
    ['two lengths of a body', twoLengths, 400, 'malformed_request'],
  ])(
    '%s: the refusal has the instance and the date, is logged under its request id, and is counted',
    async (_, bytes, status, code) => {
      const { listeners, lines } = status === 408 ? hasty : served;
      const answer = await sendRaw(listeners[listener], bytes);
      expect(answer.status).toBe(status);
      expect(answer.headers['connection']).toBe('close');
      expect(answer.headers['latchkey-instance']).toBe(authorityStatus.instance);
      expect(answer.headers['date']).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
      const { request_id } = JSON.parse(answer.body) as { request_id: string };
      expect(answer.headers['x-request-id']).toBe(request_id);
      expect(lines).toEqual([
        {
          level: 'info',
          message: 'refused',
          method: null,
          route: null,
          status,
          code,
          request_id,
          duration_ms: 0,
        },
      ]);
      expect(counted).toEqual([status]);
    },
  );

  test.each([['that cannot be decoded', '/%ff', 400]])(
    'a request for a path %s is counted although no route handles it',
    async (_, path, status) => {
      const bytes = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
      expect((await sendRaw(served.listeners[listener], bytes)).status).toBe(status);
      expect(counted).toEqual([status]);
    },
  );

  test('a pipelined request with Expect: 100-continue gets a complete response', async () => {
    const verify = 'GET /api/v2/license/verify HTTP/1.1\r\nHost: localhost\r\n';
    const expecting = `${verify}Expect: 100-continue\r\nConnection: close\r\n\r\n`;
    const { raw } = await sendRaw(served.listeners[listener], `${verify}\r\n${expecting}`);
    const answers = raw.split(/(?=HTTP\/1\.1 \d)/).map((answer) => answer.split('\r\n\r\n')[1] ?? '');
    const codes = answers.map((body) => (JSON.parse(body) as { code: string }).code);
    expect(codes).toEqual(['credentials_missing', 'credentials_missing']);
  });

  test.each([
    ['bytes that are not HTTP', 'HELLO\r\n\r\n'],
    ['CONNECT', 'CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ])('after earlier requests that are still running, the server refuses %s in order', async (_, bytes) => {
    const finish = Promise.withResolvers<string>();
    const expose = (): Promise<string> => finish.promise;
    await using slow = await serveApp({ metrics: { ...silentMetrics, expose } }, { limits });
    const metrics = `GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;
    const answered = sendRaw(slow.listeners[listener], `${metrics}${metrics}${bytes}`);
    await using other = httpClient(slow.listeners[listener]);
    // The server has read all bytes by then.
    await other.get('/livez');
    finish.resolve('a 1\n');
    const { raw } = await answered;
    const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([200, 200, 400]);
  });

  test('CONNECT behind a long response does not hold back any of it', async () => {
    const page = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const connect = 'CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const { headers, body, ending } = await sendRaw(served.listeners[listener], page + connect);
    const length = Number(headers['content-length']);
    expect(length).toBeGreaterThan(1_000_000);
    expect([Buffer.byteLength(body), ending]).toEqual([length, 'closed']);
  });

  test('CONNECT from a caller that disconnects at once only ends its own connection', async () => {
    const thrown = vi.fn<(error: Error) => void>();
    process.once('uncaughtException', thrown);
    const leaving = openSocket(served.listeners[listener]);
    await once(leaving, 'connect');
    leaving.write('CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n');
    leaving.destroy();
    await expect.poll(() => served.lines).toHaveLength(1);
    await using other = httpClient(served.listeners[listener]);
    expect((await other.get('/livez')).status).toBe(200);
    process.off('uncaughtException', thrown);
    expect(thrown).not.toHaveBeenCalled();
  });

  test('an unreadable body is refused, and the next request on the connection is answered', async () => {
    const bodies = ['{', '{"name":"a","name":"b"}', '{"name":"A"}'];
    const changes = bodies.map((body) => `${post}Content-Length: ${body.length}\r\n\r\n${body}`);
    const csv = `${post.replace('application/json', 'text/csv')}Content-Length: 1\r\n\r\na`;
    const last = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const { raw } = await sendRaw(served.listeners[listener], [...changes, csv, last].join(''));
    const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([400, 400, 201, 415, 200]);
  });

  test('the rest of a body that is too large is discarded, and the next request on the connection is answered', async () => {
    const body = '{'.repeat(1_000_000);
    const whole = `${post}Content-Length: ${body.length}\r\n\r\n${body}`;
    const inChunks = `${post}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const last = 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const { raw, ending } = await sendRaw(served.listeners[listener], [whole, inChunks, last].join(''));
    const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect([statuses, ending]).toEqual([[413, 413, 200], 'closed']);
  });

  test.each<[string, string, number]>([
    ['is too large', post, 413],
    ['has an unsupported type', post.replace('application/json', 'text/plain'), 415],
    ['has a wrong credential', post.replace(adminToken, 'wrong'), 401],
  ])(
    'a caller can send all of a long body that %s, although the connection closes afterwards',
    async (_, head, status) => {
      const body = '{'.repeat(20_000_000);
      const bytes = `${head}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const answer = await sendRaw(served.listeners[listener], bytes);
      expect([answer.status, answer.headers['connection'], answer.ending]).toEqual([
        status,
        'close',
        'closed',
      ]);
    },
  );

  test('a chunked body is read with any letter case of the Transfer-Encoding', async () => {
    const bytes = `${post}Transfer-Encoding: Chunked\r\nConnection: close\r\n\r\nc\r\n{"name":"C"}\r\n0\r\n\r\n`;
    expect((await sendRaw(served.listeners[listener], bytes)).status).toBe(201);
  });

  test('a request that waits for 100 Continue gets it once the previous request is answered', async () => {
    const body = '{"name":"D"}';
    const head = `${post}Expect: 100-continue\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
    const { socket, closed } = await CallerConnection.open(served.listeners[listener]);
    let raw = '';
    socket.on('data', (chunk: Buffer) => (raw += chunk.toString()));
    socket.write(`GET /statusz HTTP/1.1\r\nHost: localhost\r\n\r\n${head}`);
    await expect.poll(() => raw).toMatch(/"code":"credentials_missing"[^]*HTTP\/1\.1 100 Continue\r\n\r\n$/);
    socket.write(body);
    await closed;
    expect(raw).toMatch(/HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });

  test.each<[string, string, number, string]>([
    ['a body that never ends', `${post}Content-Length: 9\r\n\r\n{`, 408, 'request_timeout'],
    ['a broken chunk', `${post}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`, 400, 'malformed_request'],
  ])('%s is refused by its route, which logs and counts it once', async (_, bytes, status, code) => {
    const { listeners, lines } = status === 408 ? hasty : served;
    const answer = await sendRaw(listeners[listener], bytes);
    expect([answer.status, answer.headers['connection'], answer.ending]).toEqual([status, 'close', 'closed']);
    const { request_id } = JSON.parse(answer.body) as { request_id: string };
    expect(answer.headers['x-request-id']).toBe(request_id);
    expect(lines).toMatchObject([
      { message: 'refused', method: 'POST', route: '/admin/v1/accounts', status, code, request_id },
    ]);
    expect(counted).toEqual([]);
  });
});

test('headers that are too large are refused in the form of the store for which the software was written', async () => {
  await using store = await serveApp({ dialect: dialects.payhip }, { limits });
  const answer = await sendRaw(store.listeners.tcp, large);
  expect([answer.status, answer.headers['content-type'], JSON.parse(answer.body)]).toEqual([
    431,
    'application/json',
    { error: true, message: 'The request line and headers are larger than the limit.' },
  ]);
});

test.each([
  ['a head that never ends', 'GET /api/v2/license/verify?license_key=AAAAA HTTP/1.1\r\nHo'],
  [
    'a body that never ends',
    `PUT /api/v2/license/usage HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
  ],
])('with `unknown: reset`, software gets no answer that it could misread to %s', async (_, bytes) => {
  const short = { ...limits, headerTimeoutMs: 1_000, requestTimeoutMs: 1_200 };
  await using store = await serveApp({ dialect: dialects.payhip }, { limits: short, unknown: 'reset' });
  const answer = await sendRaw(store.listeners.tcp, bytes);
  expect(answer.status).toBeUndefined();
  expect(store.lines).toMatchObject([{ message: 'refused', status: 408, code: 'request_timeout' }]);
});
