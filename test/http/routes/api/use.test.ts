import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import type { HttpLimits, Readiness } from '../../../../src/http/app.ts';
import { StorageError } from '../../../../src/service/ports.ts';
import { secret } from '../../../support/harness/dialect-harness.ts';
import { adminToken, limits } from '../../../support/app/http-app.ts';
import { serveApp, type Served } from '../../../support/app/http-served.ts';
import { KeptConnection, openSocket } from '../../../support/network/kept-connection.ts';
import { httpClient } from '../../../support/network/raw-http.ts';

const operator = { authorization: `Bearer ${adminToken}` };

/** An authority with one license key. */
async function serve(changes: Partial<HttpLimits> = {}): Promise<
  Served & {
    uses: () => Promise<number>;
    readiness: { now: Readiness['state'] };
  }
> {
  const readiness: { now: Readiness['state'] } = { now: 'ready' };
  const served = await serveApp(
    { readiness: () => ({ state: readiness.now, reasons: [] }) },
    { limits: { ...limits, ...changes } },
  );
  await using http = httpClient(served.listeners.tcp);
  const product = { name: 'Editor', product_key: 'EDITOR', secret };
  await http.post('/admin/v1/products', { headers: operator, json: product });
  const purchase = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: 'KEY-1' };
  await http.post('/admin/v1/purchases', { headers: operator, json: purchase });
  const uses = async (): Promise<number> => (await served.app.reader.licenses.get('KEY-1'))?.uses ?? -1;
  return Object.assign(served, { uses, readiness });
}

const body = 'license_key=KEY-1';
const headOf = (carrier = `product-secret-key: ${secret}`, length = body.length): string =>
  [
    'PUT /api/v2/license/usage HTTP/1.1',
    'Host: localhost',
    carrier,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${length}`,
    '\r\n',
  ].join('\r\n');
const use = (carrier?: string): string => headOf(carrier) + body;

test('each of many concurrent uses counts once, and each response has another count', async () => {
  await using served = await serve();
  await using callers = new AsyncDisposableStack();
  const all = Array.from({ length: 40 }, () => callers.use(new KeptConnection(served.listeners.tcp)));
  const told: string[] = [];
  for (const _ of Array(3)) {
    const answers = await Promise.all(all.map((each) => each.send(use())));
    told.push(...answers.map((answer) => /"uses":(\d+),/.exec(answer)?.[1] ?? answer));
  }
  expect(new Set(told).size).toBe(120);
  expect(await served.uses()).toBe(120);
});

test('on a full listener, a new connection replaces an idle connection that sent uses', async () => {
  await using served = await serve({ connections: 2 });
  await using callers = new AsyncDisposableStack();
  const [first, second, third] = Array.from({ length: 3 }, () =>
    callers.use(new KeptConnection(served.listeners.tcp)),
  ) as [KeptConnection, KeptConnection, KeptConnection];
  for (const _ of Array(3)) await Promise.all([first.send(use()), second.send(use())]);
  expect(await third.send(use())).toContain('"uses":7,');
});

test('each of several equal uses on one connection counts once and is logged', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let count = 1; count <= 5; count += 1) expect(await kept.send(use())).toContain(`"uses":${count},`);
  expect(await served.uses()).toBe(5);
  const logged = served.lines.filter(({ message }) => message === 'changed').slice(-5);
  expect(logged).toHaveLength(5);
  expect(
    new Set(
      logged.map(({ route, status, method }) => `${String(method)} ${String(route)} ${String(status)}`),
    ),
  ).toEqual(new Set(['PUT /api/v2/license/usage 200']));
});

test('a use counts when another connection sent an equal one before', async () => {
  await using served = await serve();
  await using first = new KeptConnection(served.listeners.tcp);
  await first.send(use());
  await using second = new KeptConnection(served.listeners.tcp);
  expect(await second.send(use())).toContain('"uses":2,');
  await using third = new KeptConnection(served.listeners.tcp);
  expect(await third.send(use().replace('usage', 'disable'))).toContain('"enabled":false');
  expect(await served.uses()).toBe(2);
});

test('a disable and a decrease after equal uses on one connection are executed', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (const _ of Array(2)) await kept.send(use());
  expect(await kept.send(use().replace('usage', 'disable'))).toContain('"enabled":false');
  expect(await kept.send(use().replace('usage', 'decrease'))).toContain('"uses":1,');
  expect(await served.uses()).toBe(1);
});

test('a use counts once per idempotency key, on any connection', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  await using other = new KeptConnection(served.listeners.tcp);
  const under = (key: string, sent = body): string =>
    headOf(`Idempotency-Key: ${key}\r\nproduct-secret-key: ${secret}`, sent.length) + sent;
  const first = [];
  for (const key of ['one', 'two', '"three"']) first.push(await kept.send(under(key)));
  expect(first.map((answer) => /"uses":\d/.exec(answer)?.[0])).toEqual(['"uses":1', '"uses":2', '"uses":3']);
  const again = async (connection: KeptConnection): Promise<string[]> => {
    const answers = [];
    for (const key of ['one', 'two', 'three']) answers.push(await connection.send(under(key)));
    return answers.map((answer) => answer.slice(answer.indexOf('\r\n\r\n')));
  };
  const bodies = first.map((answer) => answer.slice(answer.indexOf('\r\n\r\n')));
  expect(await again(kept)).toEqual(bodies);
  expect(await again(other)).toEqual(bodies);
  expect(await kept.send(under('one', 'license_key=KEY-2'))).toContain('"code":"idempotency_key_reused"');
  expect(await kept.send(under(''))).toContain('"code":"idempotency_key_malformed"');
  expect(await served.uses()).toBe(3);
});

test('a use under the idempotency key of a request in progress is refused', async () => {
  await using served = await serve();
  await using first = new KeptConnection(served.listeners.tcp);
  await using second = new KeptConnection(served.listeners.tcp);
  const under = (key: string): string =>
    headOf(`Idempotency-Key: ${key}\r\nproduct-secret-key: ${secret}`) + body;
  await first.send(under('one'));
  await second.send(under('two'));
  const { licenseService } = served.app;
  const change = licenseService.change.bind(licenseService);
  const isHeld = Promise.withResolvers<void>();
  const isAsked = Promise.withResolvers<void>();
  vi.spyOn(licenseService, 'change').mockImplementationOnce(async (...asked) => {
    isAsked.resolve();
    await isHeld.promise;
    return await change(...asked);
  });
  const held = first.send(under('three'));
  await isAsked.promise;
  expect(await second.send(under('three'))).toContain('"code":"idempotency_key_in_use"');
  isHeld.resolve();
  expect(await held).toContain('"uses":3');
  expect(await second.send(under('three'))).toContain('"uses":3');
});

test('pipelined uses are answered in their order', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  await kept.send(use());
  const socket = openSocket(served.listeners.tcp);
  let received = '';
  socket.on('data', (text: string) => (received += text));
  socket.write(use().repeat(20));
  await expect.poll(() => received.match(/"uses":\d+/g)?.length).toBe(20);
  const counts = Array.from({ length: 20 }, (_, index) => `"uses":${index + 2}`);
  expect(received.match(/"uses":\d+/g)).toEqual(counts);
  socket.destroy();
});

test('a use counts if its body arrives late or in chunks', async () => {
  await using served = await serve();
  const socket = openSocket(served.listeners.tcp);
  let received = '';
  socket.setNoDelay(true).on('data', (text: string) => (received += text));
  const pieces = [[use()], [headOf(), body], [headOf() + body.slice(0, 5), body.slice(5)], [use()]];
  for (const [index, parts] of pieces.entries()) {
    for (const part of parts) {
      await new Promise((resolve) => socket.write(part, resolve));
      // The server has read this before the next chunk is sent.
      await using http = httpClient(served.listeners.tcp);
      await http.get('/livez');
    }
    await expect.poll(() => received).toContain(`"uses":${index + 1},`);
  }
  socket.destroy();
});

test.each([
  ['the default limit', limits.bodyBytes],
  ['the configured limit', 1_000],
])('a use with a body longer than %s is refused, and the longest body is accepted', async (_, bodyBytes) => {
  await using served = await serve({ bodyBytes });
  await using kept = new KeptConnection(served.listeners.tcp);
  await kept.send(use());
  const long = (length: number): string => headOf(undefined, length) + `${body}&more=`.padEnd(length, 'x');
  expect(await kept.send(long(bodyBytes))).toContain('"uses":2,');
  expect(await kept.send(long(bodyBytes + 1))).toContain('"code":"body_too_large"');
  expect(await served.uses()).toBe(2);
});

test('a use whose body breaks off does not count', async () => {
  await using served = await serve();
  const socket = openSocket(served.listeners.tcp);
  socket.write(use());
  await once(socket, 'data');
  socket.end(headOf() + body.slice(0, 12));
  await once(socket, 'close');
  expect(await served.uses()).toBe(1);
});

test('a use whose connection is lost before its body arrives is logged as refused and does not count', async () => {
  await using served = await serve();
  const socket = openSocket(served.listeners.tcp);
  socket.write(use());
  await once(socket, 'data');
  socket.write(headOf());
  // The server has read this before the connection is lost.
  await using http = httpClient(served.listeners.tcp);
  await http.get('/livez');
  socket.resetAndDestroy();
  const refused = { method: 'PUT', route: '/api/v2/license/usage', status: 400, message: 'refused' };
  await expect.poll(() => served.lines).toContainEqual(expect.objectContaining(refused));
  expect(await served.uses()).toBe(1);
});

test('a use with a revoked token is refused', async () => {
  await using served = await serve();
  await using http = httpClient(served.listeners.tcp);
  const json = { scopes: ['use'], product_key: 'EDITOR' };
  const issued = await http.post('/admin/v1/tokens', { headers: operator, json });
  const { token, token_id: id } = (issued.body as { data: Record<string, string> }).data;
  const carrier = `authorization: Bearer ${String(token)}`;
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let time = 0; time < 3; time += 1) expect(await kept.send(use(carrier))).toContain(' 200 OK');
  await http.delete(`/admin/v1/tokens/${String(id)}`, { headers: operator });
  // The writer announces the change.
  served.app.changes.announce(['credentials']);
  await using other = new KeptConnection(served.listeners.tcp);
  for (const connection of [kept, other])
    expect(await connection.send(use(carrier))).toContain(' 401 Unauthorized');
  expect(await served.uses()).toBe(3);
});

test('a use is refused while the process drains', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let time = 0; time < 3; time += 1) await kept.send(use());
  served.readiness.now = 'draining';
  expect(await kept.send(use())).toContain(' 503 Service Unavailable');
  expect(await served.uses()).toBe(3);
});

test('a use that the store refuses returns the reason, and the next use counts', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let time = 0; time < 2; time += 1) await kept.send(use());
  const full = vi
    .spyOn(served.app.licenseService, 'change')
    .mockImplementationOnce(() => Promise.reject(new StorageError('full', new Error('no room'))));
  const refused = await kept.send(use());
  expect(refused).toContain(' 507 Insufficient Storage');
  expect(refused).toContain('"code":"storage_full"');
  expect(full).toHaveBeenCalledOnce();
  expect(await kept.send(use())).toContain('"uses":3,');
});
