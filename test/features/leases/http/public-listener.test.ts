import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { Proxies } from '../../../../src/http/entry/client-address.ts';
import { specification } from '../../../../src/http/dialects.ts';
import { routesOf } from '../../../../src/http/routes/all.ts';
import { done } from '../../../../src/domain/problem/problem.ts';
import type { LeaseIssuer } from '../../../../src/features/leases/service/ports.ts';
import { listenTcp } from '../../../../src/http/listen.ts';
import { adminToken, limits, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

const routes = await routesOf(specification);

/** Answers every document with its options, so that a test sees what the listener has passed on. */
type Asked = Parameters<LeaseIssuer['answer']>;
let asked: Asked[];
const issuer: LeaseIssuer = {
  async answer(...request) {
    asked.push(request);
    return done({ lease: 'a.b.c', keys: 'd.e.f' });
  },
  statement: async () => done('d.e.f'),
  sign: async () => done({ lease: 'a.b.c', keys: 'd.e.f' }),
  status: async () => null,
  host: () => 'licenses.example.com',
  stopWaiting: () => undefined,
};

let opened: TestApp;
let server: FastifyInstance;
beforeEach(async () => {
  asked = [];
  opened = await openApp({ leaseIssuer: issuer });
  const proxies = new Proxies([{ address: '127.0.0.1', prefix: 32 }]);
  server = serverOf(opened.app, { public: { proxies, issuerHost: () => issuer.host() } });
});
afterEach(() => opened[Symbol.asyncDispose]());

const jwt = { 'content-type': 'application/jwt' };

describe('the public listener', () => {
  test('serves leases, keys and liveness, and keeps the connection open without a credential', async () => {
    const leased = await server.inject({ method: 'POST', url: '/lease/v1', headers: jwt, payload: 'x.y.z' });
    expect([leased.statusCode, leased.json()]).toEqual([200, { data: { lease: 'a.b.c', keys: 'd.e.f' } }]);
    const keys = await server.inject('/lease/v1/keys');
    expect([keys.statusCode, keys.json()]).toEqual([200, { data: { keys: 'd.e.f' } }]);
    const live = await server.inject('/livez');
    expect([live.statusCode, live.json()]).toEqual([200, { status: 'ok', reasons: [] }]);
    for (const response of [leased, keys, live]) expect(response.headers['connection']).toBe('keep-alive');
  });

  test('does not serve any other route, whatever the credential, and says so with one problem', async () => {
    const others = routes.filter(({ isPublic }) => isPublic !== true);
    expect(others.length).toBeGreaterThan(60);
    const pages = ['/', '/docs', '/docs/reference.js', '/agent', '/lease', '/lease/v2', '/hooks/v1'];
    const targets = [
      ...others.map(({ method, path }) => ({ method, url: path.replaceAll(/:\w+/g, '1') })),
      ...pages.map((url) => ({ method: 'GET' as const, url })),
    ];
    const headers = { authorization: `Bearer ${adminToken}`, accept: 'text/html' };
    for (const target of targets) {
      const response = await server.inject({ ...target, headers });
      expect([response.statusCode, response.json()], target.url).toEqual([
        404,
        expect.objectContaining({ code: 'route_not_found', detail: 'There is nothing at this path.' }),
      ]);
    }
  });

  test('does not prove that it has the admin token, since that would tell an address of this machine', async () => {
    const response = await server.inject('/livez?nonce=0123456789abcdef');
    expect(response.json()).toEqual({ status: 'ok', reasons: [] });
  });

  test.each([
    ['licenses.example.com', 200],
    ['Licenses.Example.com:443', 200],
    ['127.0.0.1:8788', 200],
    ['other.example.com', 403],
  ])('answers a request with the Host %s with %i', async (host, status) => {
    expect((await server.inject({ url: '/lease/v1/keys', headers: { host } })).statusCode).toBe(status);
  });

  test('refuses web pages', async () => {
    const origin = { origin: 'https://licenses.example.com' };
    const response = await server.inject({ url: '/lease/v1/keys', headers: origin });
    expect(response.json()).toMatchObject({ status: 403, code: 'origin_forbidden' });
  });

  test('passes on the address of the client that the proxy has seen', async () => {
    const headers = { ...jwt, 'x-forwarded-for': '192.0.2.1, 198.51.100.1', prefer: 'wait=90' };
    await server.inject({ method: 'POST', url: '/lease/v1', headers, payload: 'x.y.z' });
    expect(asked).toEqual([
      ['x.y.z', { waitMs: 30_000, clientAddress: '198.51.100.1', signal: expect.any(AbortSignal) }],
    ]);
  });
});

test('a new connection ends the oldest wait of the address with the most waits, with 204', async () => {
  let begun = 0;
  const waiting = {
    ...issuer,
    answer: async (...[, { signal }]: Parameters<LeaseIssuer['answer']>) => {
      begun += 1;
      if (!signal.aborted) await once(signal, 'abort');
      return done(null);
    },
  };
  const proxies = new Proxies([{ address: '127.0.0.1', prefix: 32 }]);
  await using listening = serverOf(
    { ...opened.app, leaseIssuer: waiting },
    { limits: { ...limits, connections: 3 }, public: { proxies, issuerHost: () => null } },
  );
  const tcp = await listenTcp(listening, { host: '127.0.0.1', port: 0 });
  const request = (address: string): string =>
    `POST /lease/v1 HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${address}\r\nPrefer: wait=30\r\n` +
    'Content-Type: application/jwt\r\nContent-Length: 5\r\n\r\nx.y.z';
  const ended: string[] = [];
  const send = (address: string, name: string): Socket => {
    const socket = connect(Number(new URL(tcp).port), '127.0.0.1');
    socket.on('data', (chunk: Buffer) => ended.push(`${name}: ${chunk.toString('latin1', 9, 12)}`));
    socket.on('error', () => undefined);
    socket.write(request(address));
    return socket;
  };
  const sockets: Socket[] = [];
  const open = async (address: string, name: string): Promise<void> => {
    sockets.push(send(address, name));
    await expect.poll(() => begun).toBe(sockets.length);
  };
  await open('198.51.100.1', 'first of many');
  await open('198.51.100.1', 'second of many');
  await open('198.51.100.2', 'only one');
  await open('198.51.100.3', 'new');
  await expect.poll(() => ended).toEqual(['first of many: 204']);
  for (const socket of sockets) socket.destroy();
});

describe('POST /lease/v1', () => {
  test('answers at every other listener, too, and closes the connection there', async () => {
    const response = await serverOf(opened.app).inject({
      method: 'POST',
      url: '/lease/v1',
      headers: { ...jwt, 'x-forwarded-for': '198.51.100.1' },
      payload: 'x.y.z',
    });
    expect([response.statusCode, response.headers['connection']]).toEqual([200, 'close']);
    expect(asked.map(([, { clientAddress }]) => clientAddress)).toEqual(['127.0.0.1']);
  });

  test.each([
    ['a form', 'application/x-www-form-urlencoded', 'document=x'],
    ['JSON', 'application/json', '{"document":"x"}'],
    ['text', 'text/plain', 'x.y.z'],
    ['no type', undefined, 'x.y.z'],
  ])('refuses %s with 415', async (_, type, payload) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    const response = await server.inject({ method: 'POST', url: '/lease/v1', headers, payload });
    expect(response.json()).toMatchObject({
      status: 415,
      code: 'unsupported_media_type',
      detail: 'Send application/jwt.',
    });
    expect(asked).toEqual([]);
  });

  test('accepts a document of 8 KiB and refuses a larger one', async () => {
    const post = async (length: number): Promise<number> => {
      const payload = 'x'.repeat(length);
      return (await server.inject({ method: 'POST', url: '/lease/v1', headers: jwt, payload })).statusCode;
    };
    expect([await post(8_192), await post(8_193)]).toEqual([200, 413]);
    expect(asked).toHaveLength(1);
  });

  test('refuses bytes that are not UTF-8', async () => {
    const payload = Buffer.from([0xff, 0x2e, 0xfe]);
    const response = await server.inject({ method: 'POST', url: '/lease/v1', headers: jwt, payload });
    expect(response.json()).toMatchObject({ status: 400, code: 'malformed_body' });
    expect(asked).toEqual([]);
  });

  test('answers 204 if nothing has changed', async () => {
    const app = { ...opened.app, leaseIssuer: { ...issuer, answer: async () => done(null) } };
    const response = await serverOf(app).inject({
      method: 'POST',
      url: '/lease/v1',
      headers: jwt,
      payload: 'x.y.z',
    });
    expect([response.statusCode, response.body]).toEqual([204, '']);
  });

  test.each(['/lease/v1', '/lease/v1/keys'])('is refused by a holder: %s', async (url) => {
    const holder = serverOf({ ...opened.app, role: 'holder', leaseIssuer: null });
    const response = await holder.inject({
      url,
      ...(url === '/lease/v1' && { method: 'POST', headers: jwt, payload: 'x.y.z' }),
    });
    expect(response.json()).toMatchObject({ status: 409, code: 'not_an_issuer' });
  });

  test('is the only route that reads a signed document', async () => {
    const response = await serverOf(opened.app).inject({
      method: 'PUT',
      url: '/api/v2/license/usage',
      headers: { ...jwt, authorization: `Bearer ${adminToken}` },
      payload: 'x.y.z',
    });
    expect(response.json()).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  });
});
