import { connect } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { Proxies } from '../../../../src/http/entry/client-address.ts';
import { listenTcp } from '../../../../src/http/listen.ts';
import type {
  EventResult,
  ReceivedEvent,
  StoreEvents,
} from '../../../../src/features/webhooks/service/store-event.ts';
import { openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

let opened: TestApp;
let server: FastifyInstance;
let received: ReceivedEvent[];
let result: EventResult;
const storeEvents: StoreEvents = {
  async receive(event) {
    received.push(event);
    return result;
  },
  status: () => ({ senders: [], waitingReads: 0 }),
};

beforeEach(async () => {
  received = [];
  result = 'accepted';
  opened = await openApp({ role: 'agent', storeEvents });
  server = serverOf(opened.app);
});
afterEach(() => opened[Symbol.asyncDispose]());

const post = { method: 'POST', url: '/hooks/v1/shop' } as const;

describe('POST /hooks/v1/:name', () => {
  test.each([
    ['JSON', 'application/json', '{"a": 1,  "a": 2}'],
    ['a form', 'application/x-www-form-urlencoded', 'a=1&a=2&b=%zz'],
    ['a type that no other route takes', 'text/plain; charset=latin1', 'text'],
    ['a type that is none', 'json', '{}'],
    ['bytes that are not UTF-8', 'application/json', Buffer.from([0xff, 0x00, 0xfe])],
    ['CSV', 'text/csv', '"'],
    ['a signed document', 'application/jwt', 'a.b.c'],
  ])('passes on %s byte by byte, with its headers, and answers 200', async (_, type, payload) => {
    const headers = { 'content-type': type, 'x-signature': 'abc' };
    const response = await server.inject({ ...post, headers, payload });
    expect([response.statusCode, response.body]).toEqual([200, '']);
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ name: 'shop', secret: null, headers: { 'x-signature': 'abc' } });
    expect(received[0]?.body).toEqual(Buffer.from(payload));
  });

  test.each(['nothing_known', 'too_many', 'wrong_signature', 'not_understood', 'unknown_name'] as const)(
    'answers 200 if the result is %s',
    async (other) => {
      result = other;
      const response = await server.inject({ ...post, payload: {} });
      expect([response.statusCode, response.body]).toEqual([200, '']);
    },
  );

  test('answers 200 to an event without a body and without Content-Type', async () => {
    expect((await server.inject(post)).statusCode).toBe(200);
    const untyped = await server.inject({ ...post, payload: Buffer.from('x') });
    expect(untyped.statusCode).toBe(200);
    expect(received.map(({ body }) => body.toString())).toEqual(['', 'x']);
  });

  test('answers 200 to a body with Content-Encoding, which it does not decode', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    expect((await server.inject({ ...post, headers, payload: Buffer.from('not gzip') })).statusCode).toBe(
      200,
    );
  });

  test('takes the secret from the query', async () => {
    await server.inject({ ...post, url: '/hooks/v1/shop?secret=in%20the%20URL&x=1', payload: 'a=1' });
    expect(received[0]?.secret).toBe('in the URL');
  });

  test('takes a body of 64 KiB, also where other routes take less, and answers a larger one with 413', async () => {
    const headers = { 'content-type': 'application/json' };
    const largest = await server.inject({ ...post, headers, payload: Buffer.alloc(65_536, 0x20) });
    expect(largest.statusCode).toBe(200);
    expect(received[0]?.body).toHaveLength(65_536);
    const larger = await server.inject({ ...post, headers, payload: Buffer.alloc(65_537, 0x20) });
    expect(larger.json()).toMatchObject({ status: 413, code: 'body_too_large' });
    expect(received).toHaveLength(1);
  });

  test.each([
    ['is not valid percent-encoding', '?secret=%zz'],
    ['names a parameter twice', '?a=1&a=2'],
    ['has no names', '?&&='],
    ['has more parameters than other routes take', `?${'a=1&'.repeat(1_000)}`],
  ])('answers 200 to an event whose query %s', async (_, query) => {
    const response = await server.inject({ ...post, url: `/hooks/v1/shop${query}`, payload: 'a=1' });
    expect([response.statusCode, response.body]).toEqual([200, '']);
    expect(received).toHaveLength(1);
  });

  test('writes no line to the log of requests, because anybody can send events', async () => {
    await server.inject({ ...post, payload: {} });
    expect(opened.lines).toEqual([]);
  });

  test('refuses other methods, and web pages', async () => {
    const get = await server.inject('/hooks/v1/shop');
    expect(get.json()).toMatchObject({ status: 405 });
    expect(get.headers['allow']).toBe('POST');
    const page = await server.inject({ ...post, headers: { origin: 'https://example.com' }, payload: {} });
    expect(page.json()).toMatchObject({ status: 403, code: 'origin_forbidden' });
    expect(received).toEqual([]);
  });

  test.each(['authority', 'holder'] as const)(
    'is 409 not_an_agent on an instance that is %s',
    async (role) => {
      const other = serverOf({ ...opened.app, role, storeEvents: null });
      const response = await other.inject({ ...post, payload: {} });
      expect(response.json()).toMatchObject({ status: 409, code: 'not_an_agent' });
    },
  );

  test('other routes still refuse a body of another type', async () => {
    const response = await server.inject({
      method: 'PUT',
      url: '/api/v2/license/usage',
      headers: { 'content-type': 'text/plain', 'product-secret-key': 'x' },
      payload: 'x',
    });
    expect(response.statusCode).not.toBe(200);
    expect(received).toEqual([]);
  });
});

test('the public listener serves events behind its proxy, and keeps the connection open', async () => {
  await using listening = serverOf(opened.app, {
    allowedHosts: ['hooks.example.com'],
    public: { proxies: new Proxies([]), issuerHost: () => null },
  });
  const tcp = new URL(await listenTcp(listening, { host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(tcp.port), '127.0.0.1');
  // Other routes refuse a second type and a second credential.
  const twice = ['Content-Type: a/b', 'Content-Type: c/d', 'API-KEY: one', 'API-KEY: two'].join('\r\n');
  const event = `POST /hooks/v1/shop HTTP/1.1\r\nHost: hooks.example.com\r\n${twice}\r\nContent-Length: 2\r\n\r\n{}`;
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => (text += chunk));
  for (const count of [1, 2]) {
    socket.write(event);
    while (text.split('HTTP/1.1 200').length <= count) await once(socket, 'data');
  }
  socket.destroy();
  expect(received).toHaveLength(2);
});
