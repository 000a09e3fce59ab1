import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import { connect as connectSecurely } from 'node:tls';
import { expect, test, describe } from 'vitest';
import type { App, HttpLimits, Readiness } from '../../../src/http/app.ts';
import {
  adminToken,
  limits,
  silentMetrics,
  openApp,
  serverOf,
  type TestApp,
} from '../../support/app/http-app.ts';
import { serveApp, type Served } from '../../support/app/http-served.ts';
import { CallerConnection as Connection } from '../../support/network/caller-connection.ts';
import { httpClient, sendRaw } from '../../support/network/raw-http.ts';
import { buildToken } from '../../support/builders/store-builders.ts';

const listeners = ['tcp', 'tls', 'socket'] as const;
const authorized = `GET /statusz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;
const anonymous = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';

function serveFew(
  connections: number,
  changes: Partial<App> = {},
  more: Partial<HttpLimits> = {},
): Promise<Served> {
  return serveApp(changes, { limits: { ...limits, ...more, connections } });
}

/** Sells a license key through another listener; returns the request that verifies it. */
async function sellKey(served: Served, kind: (typeof listeners)[number]): Promise<string> {
  const { tcp, socket } = served.listeners;
  await using http = httpClient(kind === 'tcp' ? socket : tcp);
  const headers = { authorization: `Bearer ${adminToken}` };
  const product = { name: 'Editor', product_key: 'EDITOR' };
  await http.post('/admin/v1/products', { headers, json: product });
  const purchase = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: 'KEY-1' };
  await http.post('/admin/v1/purchases', { headers, json: purchase });
  return authorized.replace('/statusz', '/api/v2/license/verify?license_key=KEY-1');
}

test.each(listeners)(
  'on a full listener (%s) a new caller replaces the connection that was idle longest',
  async (kind) => {
    await using served = await serveFew(3);
    const listener = served.listeners[kind];
    const first = await Connection.open(listener);
    const second = await Connection.open(listener);
    const third = await Connection.open(listener);
    for (const each of [first, second, third, first]) expect(await each.ask(authorized)).toContain(' 200 ');
    // The first connection was used again, so the second was idle longest.
    const fourth = await Connection.open(listener);
    expect(await fourth.ask(authorized)).toContain(' 200 ');
    await second.closed;
    for (const each of [first, third, fourth]) expect(await each.ask(authorized)).toContain(' 200 ');
  },
);

test.each(listeners)(
  'a connection whose verifies the response cache answers (%s) is not the one that was idle longest',
  async (kind) => {
    await using served = await serveFew(2, { cachesResponses: true });
    const listener = served.listeners[kind];
    const verify = await sellKey(served, kind);
    const first = await Connection.open(listener);
    const second = await Connection.open(listener);
    for (const each of [first, second, second, first]) expect(await each.ask(verify)).toContain(' 200 ');
    const third = await Connection.open(listener);
    await second.closed;
    for (const each of [first, third]) expect(await each.ask(verify)).toContain(' 200 ');
  },
);

test.each(listeners)('connections that never send a byte (%s) do not block new callers', async (kind) => {
  await using served = await serveFew(2);
  const listener = served.listeners[kind];
  const silent = [await Connection.open(listener), await Connection.open(listener)];
  const caller = await Connection.open(listener);
  expect(await caller.ask(authorized)).toContain(' 200 ');
  await silent[0]?.closed;
  expect(silent[1]?.socket.destroyed).toBe(false);
  // Node 24 would wait for this connection before the server closes.
  silent[1]?.socket.destroy();
});

test('unfinished TLS handshakes do not block new callers, and do not close connections in use', async () => {
  await using served = await serveFew(3);
  const { tls } = served.listeners;
  const kept = await Connection.open(tls);
  expect(await kept.ask(authorized)).toContain(' 200 ');
  const silent = [await Connection.openWithoutHandshake(tls), await Connection.openWithoutHandshake(tls)];
  const caller = await Connection.open(tls);
  expect(await caller.ask(authorized)).toContain(' 200 ');
  await silent[0]?.closed;
  const another = await Connection.open(tls);
  expect(await another.ask(authorized)).toContain(' 200 ');
  await silent[1]?.closed;
  expect(await kept.ask(authorized)).toContain(' 200 ');
});

test('a closing server does not wait for TLS handshakes', async () => {
  const served = await serveFew(3, {}, { headerTimeoutMs: 250_000, requestTimeoutMs: 250_000 });
  const silent = await Connection.openWithoutHandshake(served.listeners.tls);
  await expect(served[Symbol.asyncDispose]()).resolves.toBeUndefined();
  await silent.closed;
});

test('the log names callers that send plain HTTP to a TLS listener, and callers that do not trust the certificate', async () => {
  await using served = await serveFew(3);
  const { tls } = served.listeners;
  const plain = await Connection.openWithoutHandshake(tls);
  expect(await plain.ask(authorized)).toBe('');
  // OpenSSL and browsers send the fatal alerts 48 and 46 once they have seen the certificate.
  for (const alert of [48, 46]) {
    const [client, wire] = duplexPair();
    connectSecurely({ socket: client, maxVersion: 'TLSv1.2' });
    const [hello] = (await once(wire, 'data')) as [Buffer];
    const { socket } = await Connection.openWithoutHandshake(tls);
    const seen = once(socket, 'readable');
    socket.write(hello);
    await seen;
    socket.write(Buffer.from([0x15, 3, 3, 0, 2, 2, alert]));
  }
  const reasons = (): unknown[] =>
    served.lines.filter(({ message }) => message === 'a TLS connection failed').map(({ error }) => error);
  // OpenSSL chooses the spelling of its error code.
  const told = (): string[] => reasons().map((reason) => String(reason).replace(/ \(ERR_.*\)$/, ''));
  const distrust = 'the caller does not trust the certificate';
  await expect.poll(told).toEqual(['the caller speaks plain HTTP', distrust, distrust]);
});

test.each(listeners)('half requests (%s) do not block new callers', async (kind) => {
  await using served = await serveFew(2);
  const listener = served.listeners[kind];
  const slow = [await Connection.open(listener), await Connection.open(listener)];
  for (const { socket } of slow) socket.write('GET /livez HTTP/1.1\r\nHo');
  const caller = await Connection.open(listener);
  expect(await caller.ask(authorized)).toContain(' 200 ');
  // A closing server waits for half a request.
  for (const { socket } of slow) socket.destroy();
});

test.each(listeners)(
  'the maximum number of idle connections (%s) does not block new callers',
  async (kind) => {
    await using served = await serveFew(limits.connections);
    const listener = served.listeners[kind];
    const idle = await Promise.all(
      Array.from({ length: limits.connections }, () => Connection.open(listener)),
    );
    for (const each of idle) expect(await each.ask(authorized)).toContain(' 200 ');
    const caller = await Connection.open(listener);
    expect(await caller.ask(authorized)).toContain(' 200 ');
  },
);

test.each(listeners)(
  'a connection with a running request (%s) is never closed for a new caller',
  async (kind) => {
    const underWay = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const expose = async (): Promise<string> => {
      underWay.resolve();
      await finish.promise;
      return 'a 1\n';
    };
    await using served = await serveFew(1, {
      metrics: { ...silentMetrics, expose },
    });
    const listener = served.listeners[kind];
    const busy = await Connection.open(listener);
    const answer = busy.ask(authorized.replace('/statusz', '/metrics'));
    await underWay.promise;
    const refused = await Connection.open(listener);
    await refused.closed;
    finish.resolve();
    expect(await answer).toContain(' 200 ');
    // The connection is idle now, and is replaced.
    const caller = await Connection.open(listener);
    expect(await caller.ask(authorized)).toContain(' 200 ');
    await busy.closed;
  },
);

test.each(listeners)(
  'a connection with a second running request after an answered one (%s) is not closed for a new caller',
  async (kind) => {
    const finish = Promise.withResolvers<string>();
    await using served = await serveFew(1, { metrics: { ...silentMetrics, expose: () => finish.promise } });
    const listener = served.listeners[kind];
    const busy = await Connection.open(listener);
    expect(await busy.ask(authorized + authorized.replace('/statusz', '/metrics'))).toContain(' 200 ');
    await (
      await Connection.open(listener)
    ).closed;
    const answer = busy.ask('');
    finish.resolve('a 1\n');
    expect(await answer).toContain(' 200 ');
  },
);

test.each(listeners)('a caller that disconnects before its response (%s) frees its place', async (kind) => {
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const finish = Promise.withResolvers<string>();
  let asked = 0;
  const expose = (): Promise<string> => {
    begun[asked === 0 ? 0 : 1].resolve();
    asked += 1;
    return finish.promise;
  };
  await using served = await serveFew(1, { metrics: { ...silentMetrics, expose } });
  const listener = served.listeners[kind];
  const metrics = authorized.replace('/statusz', '/metrics');
  const leaving = await Connection.open(listener);
  leaving.socket.write(metrics);
  await begun[0].promise;
  leaving.socket.destroy();
  const opened = async (): Promise<Connection> => {
    const caller = await Connection.open(listener);
    // There is no place until the server has noticed that the other caller disconnected.
    return (await caller.ask(authorized)) === '' ? await opened() : caller;
  };
  const caller = await opened();
  const answer = caller.ask(metrics);
  await begun[1].promise;
  await (
    await Connection.open(listener)
  ).closed;
  finish.resolve('a 1\n');
  expect(await answer).toContain(' 200 ');
});

test.each(listeners)(
  'callers that do not read their responses (%s) do not block new callers',
  async (kind) => {
    // More than the system buffers for a caller that does not read.
    const expose = (): Promise<string> => Promise.resolve('a'.repeat(32 * 1024 * 1024));
    await using served = await serveFew(2, { metrics: { ...silentMetrics, expose } });
    const listener = served.listeners[kind];
    const deaf = [await Connection.open(listener), await Connection.open(listener)];
    for (const { socket } of deaf) {
      const begun = once(socket, 'readable');
      socket.removeAllListeners('data').pause();
      socket.write(authorized.replace('/statusz', '/metrics'));
      await begun;
    }
    const caller = await Connection.open(listener);
    expect(await caller.ask(authorized)).toContain(' 200 ');
    deaf[0]?.socket.resume();
    await deaf[0]?.closed;
    expect(deaf[1]?.socket.destroyed).toBe(false);
  },
);

test.each(['tcp', 'socket'] as const)(
  'a connection with more than 100 unanswered requests (%s) is closed',
  async (kind) => {
    const refused = 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n';
    await using served = await serveFew(2);
    const listener = served.listeners[kind];
    const patient = await sendRaw(listener, refused.repeat(99) + anonymous);
    expect(patient.raw.split('HTTP/1.1 404 ')).toHaveLength(100);
    expect(patient.raw).toContain('HTTP/1.1 200 ');
    const flooding = await sendRaw(listener, refused.repeat(100) + anonymous);
    expect(flooding.raw).not.toContain('HTTP/1.1 200 ');
  },
);

test.each(listeners)(
  'a request without a credential (%s) does not keep its connection open',
  async (kind) => {
    await using served = await serveFew(2);
    const listener = served.listeners[kind];
    for (const path of ['/livez', '/readyz', '/openapi.json']) {
      const caller = await Connection.open(listener);
      const head = await caller.ask(anonymous.replace('/livez', path));
      expect(head.toLowerCase()).toContain('connection: close');
      await caller.closed;
    }
    const caller = await Connection.open(listener);
    expect((await caller.ask(authorized)).toLowerCase()).toContain('connection: keep-alive');
  },
);

const asOperator = `Host: localhost\r\nAuthorization: Bearer ${adminToken}\r\n`;
const list = `GET /admin/v1/accounts?limit=100 HTTP/1.1\r\n${asOperator}Connection: close\r\n\r\n`;

/** The complete request that creates an account. */
function add(name: string, headers = ''): string {
  const body = JSON.stringify({ name });
  const head = `POST /admin/v1/accounts HTTP/1.1\r\n${asOperator}${headers}Content-Type: application/json\r\n`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

describe.each(['tcp', 'socket'] as const)('requests that are pipelined over %s', (listener) => {
  test.each([
    ['a public route', 'ready', [add('one'), anonymous, add('lost')], [201, 200]],
    [
      'a request with Expect: 100-continue',
      'ready',
      [add('one'), add('two', 'Expect: 100-continue\r\n'), add('lost')],
      [201, 201],
    ],
    ['any request while the process shuts down', 'leaving', [add('one'), add('lost')], [201]],
  ] as const)(
    'a request pipelined behind %s is not executed, because that response closes the connection',
    async (_, state, sent, answered) => {
      await using served = await serveApp({ readiness: () => ({ state, reasons: [] }) });
      const { raw, ending } = await sendRaw(served.listeners[listener], sent.join(''));
      const statuses = [...raw.matchAll(/HTTP\/1\.1 ([2-5]\d\d)/g)].map(([, status]) => Number(status));
      expect([statuses, ending]).toEqual([answered, 'closed']);
      const { body } = await sendRaw(served.listeners[listener], list);
      expect(body).toContain('"one"');
      expect(body).not.toContain('lost');
    },
  );

  test('a request pipelined behind a first request with Expect: 100-continue is answered', async () => {
    await using served = await serveApp();
    const sent = [add('one', 'Expect: 100-continue\r\n'), add('two'), list].join('');
    const { raw } = await sendRaw(served.listeners[listener], sent);
    const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([100, 201, 201, 200]);
  });
});

const lines = (...given: string[]): Buffer =>
  Buffer.from([...given, 'Connection: close', '', ''].join('\r\n'));

test('of several errors of a head, the first in the documented order is reported', async () => {
  await using served = await serveApp({}, { limits });
  const { instance } = served.app;
  const target = 'GET http://evil.example/nowhere?a=1&a=2 HTTP/1.1';
  const path = 'GET /nowhere?a=1&a=2 HTTP/1.1';
  const many = Array.from({ length: 40 }, (_, index) => `X-${index}: 1`);
  const [foreign, ours] = ['Host: evil.example', 'Host: localhost'];
  const [page, twice] = ['Origin: https://evil.example', 'Content-Type: a\r\nContent-Type: b'];
  const itself = `Latchkey-Instance: ${instance}`;
  const rest = [page, twice, itself];
  const told: [status: number | undefined, what: string][] = [];
  for (const head of [
    lines(target, foreign, ...rest, ...many),
    lines(target, foreign, foreign, ...rest),
    lines(target, foreign, ...rest),
    lines(target, ours, ...rest),
    lines(path, ours, ...rest),
    lines(path, ours, twice, itself),
    lines(path, ours, itself),
    lines('GET /nowhere HTTP/1.1', ours, itself),
    lines('GET /nowhere HTTP/1.1', ours),
  ]) {
    const { status, body } = await sendRaw(served.listeners.tcp, head);
    const { code, detail } = JSON.parse(body) as { code: string; detail: string };
    told.push([status, code === 'malformed_request' ? detail : code]);
  }
  expect(told).toEqual([
    [431, 'headers_too_large'],
    [400, 'Exactly one well-formed Host is needed.'],
    [403, 'host_forbidden'],
    [400, 'The target must be a path.'],
    [403, 'origin_forbidden'],
    [400, 'Content-Type is sent twice.'],
    [400, 'duplicate_parameter'],
    [508, 'loop_detected'],
    [404, 'route_not_found'],
  ]);
});

test('after the head, the server checks the route, the readiness, the credential, the role and the body, in this order', async () => {
  const readiness: { now: Readiness['state'] } = { now: 'draining' };
  const state = { readiness: () => ({ state: readiness.now, reasons: [] }) };
  await using agent = await openApp({ role: 'agent', ...state });
  await using authority = await openApp(state);
  const token = buildToken({ accountId: 'default' });
  await agent.write(({ tokens }) => tokens.add(token, agent.app.digest('lk_tok_seller')));
  const ask = async ({ app }: TestApp, bearer: string, url = '/admin/v1/accounts'): Promise<string> => {
    const headers = { authorization: `Bearer ${bearer}`, 'content-encoding': 'gzip' };
    const answer = await serverOf(app).inject({ method: 'POST', url, headers, payload: 'x' });
    return answer.json<{ code: string }>().code;
  };
  expect(await ask(agent, 'wrong', '/nowhere')).toBe('route_not_found');
  expect(await ask(agent, 'wrong')).toBe('draining');
  readiness.now = 'ready';
  expect(await ask(agent, 'wrong')).toBe('credentials_invalid');
  expect(await ask(agent, 'lk_tok_seller')).toBe('operator_only');
  expect(await ask(agent, adminToken)).toBe('not_the_authority');
  expect(await ask(authority, adminToken)).toBe('unsupported_media_type');
});
