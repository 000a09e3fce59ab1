import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import { CopyMemory } from '../../src/daemon/role/copy.ts';
import { done } from '../../src/domain/problem/problem.ts';
import type { App, Readiness, ServerSettings } from '../../src/http/app.ts';
import { Rates } from '../../src/http/entry/request-rates.ts';
import { Memory } from '../../src/http/memory.ts';
import { StorageError } from '../../src/service/ports.ts';
import { secret } from '../support/harness/dialect-harness.ts';
import { adminToken, limits, silentMetrics } from '../support/app/http-app.ts';
import { serveApp, type Served } from '../support/app/http-served.ts';
import {
  KeptConnection,
  openSocket,
  withNewHead,
  withoutInstant,
} from '../support/network/kept-connection.ts';
import { httpClient } from '../support/network/raw-http.ts';

const operator = { authorization: `Bearer ${adminToken}` };

type Given = Served & {
  /** What was answered past the route. */
  counted: number[];
  readiness: { now: Readiness['state'] };
  clock: { at: number };
  knownGrants: CopyMemory;
};

/** An authority with one license key that remembers credentials, as a copy on PostgreSQL does, and no answers. */
async function serve(changes: Partial<App> = {}, settings: Partial<ServerSettings> = {}): Promise<Given> {
  const counted: number[] = [];
  const metrics = { ...silentMetrics, countAnswer: (_: string, status: number) => void counted.push(status) };
  const readiness: Given['readiness'] = { now: 'ready' };
  const clock = { at: 0 };
  const knownGrants = new CopyMemory({ now: () => clock.at, elapsed: () => clock.at });
  const served = await serveApp(
    { knownGrants, metrics, readiness: () => ({ state: readiness.now, reasons: [] }), ...changes },
    { limits, ...settings },
  );
  await using http = httpClient(served.listeners.tcp);
  const product = { name: 'Editor', product_key: 'EDITOR', secret };
  await http.post('/admin/v1/products', { headers: operator, json: product });
  const purchase = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: 'KEY-1' };
  await http.post('/admin/v1/purchases', { headers: operator, json: purchase });
  return Object.assign(served, { counted, readiness, clock, knownGrants });
}

const verify = (licenseKey = 'KEY-1', carrier = `product-secret-key: ${secret}`): string =>
  `GET /api/v2/license/verify?license_key=${licenseKey} HTTP/1.1\r\nHost: localhost\r\n${carrier}\r\n\r\n`;

/** What is answered on the long way. */
async function answerAnew({ listeners }: Given): Promise<string> {
  await using fresh = new KeptConnection(listeners.tcp);
  return withoutInstant(await fresh.send(withNewHead(verify())));
}

test('a license is read for every verify', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  await using http = httpClient(served.listeners.tcp);
  for (let time = 0; time < 3; time += 1) expect(await kept.send(verify())).toContain('"uses":0,');
  expect(served.counted).toEqual([200, 200]);
  const headers = { 'product-secret-key': secret };
  await http.put('/api/v2/license/usage', { headers, form: { license_key: 'KEY-1' } });
  expect(await kept.send(verify())).toContain('"uses":1,');
  expect(await kept.send(verify('NONE'))).toContain('"code":"license_not_found"');
  expect(await kept.send(verify())).toContain('"uses":1,');
  expect(served.counted).toEqual([200, 200, 200, 404, 200]);
  const refused = served.lines.filter(({ message, method }) => message === 'refused' && method === 'GET');
  expect(refused).toMatchObject([
    { route: '/api/v2/license/verify', status: 404, code: 'license_not_found' },
  ]);
});

test('what an operator was answered of another account’s license is not repeated to a token of its own', async () => {
  await using served = await serve({ memory: new Memory() });
  await using http = httpClient(served.listeners.tcp);
  const make = async (noun: string, json: object): Promise<Record<string, string>> => {
    const made = await http.post(`/admin/v1/${noun}`, { headers: operator, json });
    return (made.body as { data: Record<string, string> }).data;
  };
  const { account_id } = await make('accounts', { name: 'Other' });
  await make('products', { name: 'Player', product_key: 'PLAYER', account_id });
  await make('purchases', { product_key: 'PLAYER', buyer_email: 'a@example.com', license_key: 'KEY-2' });
  const { token } = await make('tokens', { scopes: ['verify'] });
  await using kept = new KeptConnection(served.listeners.tcp);
  const statusOf = async (licenseKey: string, given: string): Promise<string> =>
    (await kept.send(verify(licenseKey, `authorization: Bearer ${given}`))).slice(9, 12);
  for (let time = 0; time < 4; time += 1) expect(await statusOf('KEY-2', adminToken)).toBe('200');
  expect(await statusOf('KEY-1', String(token))).toBe('200');
  expect(await statusOf('KEY-2', String(token))).toBe('404');
});

test('a credential is found anew after a second, and when it is forgotten', async () => {
  await using served = await serve();
  await using http = httpClient(served.listeners.tcp);
  const json = { scopes: ['verify'], product_key: 'EDITOR' };
  const issued = await http.post('/admin/v1/tokens', { headers: operator, json });
  const { token, token_id: id } = (issued.body as { data: Record<string, string> }).data;
  const carrier = `authorization: Bearer ${String(token)}`;
  await using kept = new KeptConnection(served.listeners.tcp);
  await using other = new KeptConnection(served.listeners.tcp);
  const statuses = async (): Promise<string[]> => {
    const answers = [await kept.send(verify('KEY-1', carrier)), await other.send(verify('KEY-1', carrier))];
    return answers.map((answer) => answer.slice(9, 12));
  };
  await statuses();
  expect(await statuses()).toEqual(['200', '200']);
  expect(served.counted).toEqual([200, 200, 200]);
  served.clock.at += 999;
  await statuses();
  expect(served.counted).toHaveLength(5);
  served.clock.at += 1;
  // The first goes the long way, by which the credential is known to both again.
  await statuses();
  expect(served.counted).toHaveLength(6);
  await http.delete(`/admin/v1/tokens/${String(id)}`, { headers: operator });
  served.knownGrants.forget();
  expect(await statuses()).toEqual(['401', '401']);
  expect(served.counted).toHaveLength(6);
});

test('a verify whose credential has come to stand for something else goes by its route', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let time = 0; time < 2; time += 1) expect(await kept.send(verify())).toContain(' 200 OK');
  const grantOf = vi.spyOn(served.knownGrants, 'grantOf').mockImplementation(() => ({
    principal: {
      credential: 'product:PLAYER',
      scopes: ['verify'],
      reach: { accountId: 'default', productKey: 'PLAYER' },
      isOperator: false,
    },
    token: null,
    endsAt: null,
  }));
  // Its route knows better.
  expect(await kept.send(verify())).toContain(' 200 OK');
  expect(grantOf).toHaveBeenCalled();
  expect(served.counted).toEqual([200]);
});

test.for(['unavailable', 'full', 'failed'] as const)(
  'a verify whose read fails (%s) is refused as on its route, and the next is answered',
  async (fault) => {
    await using served = await serve();
    await using kept = new KeptConnection(served.listeners.tcp);
    for (let time = 0; time < 2; time += 1) await kept.send(verify());
    const reads = vi
      .spyOn(served.app.licensing, 'verify')
      .mockImplementation(() => Promise.reject(new StorageError(fault, new Error('no answer'))));
    const refused = withoutInstant(await kept.send(verify()));
    expect(refused).toBe(await answerAnew(served));
    expect(refused).toContain(`"code":"storage_${fault}"`);
    reads.mockRestore();
    expect(await kept.send(verify())).toContain(' 200 OK');
    expect(served.counted).toEqual([200, refused.startsWith('HTTP/1.1 507') ? 507 : 503, 200]);
  },
);

test('where nothing can be said of a key, the connection is closed upon a verify as on its route', async () => {
  await using served = await serve({}, { unknown: 'reset' });
  const socket = openSocket(served.listeners.tcp);
  let received = '';
  socket.on('data', (text: string) => (received += text));
  socket.write(verify());
  await expect.poll(() => received).toContain(' 200 OK');
  vi.spyOn(served.app.licensing, 'verify').mockImplementation(() =>
    Promise.reject(new StorageError('unavailable', new Error('away'))),
  );
  received = '';
  socket.write(verify());
  await once(socket, 'close');
  expect(received).toBe('');
  expect(served.counted).toEqual([499]);
  expect(served.lines).toContainEqual(expect.objectContaining({ status: 503, code: 'storage_unavailable' }));
});

test('beyond the rate of its credential a verify is refused, and each counts once', async () => {
  const rates = new Rates(
    () => ({ rate: 3, failedRate: 1_000_000 }),
    () => 0,
  );
  await using served = await serve({ rates });
  await using kept = new KeptConnection(served.listeners.tcp);
  const statuses: string[] = [];
  for (let time = 0; time < 5; time += 1) statuses.push((await kept.send(verify())).slice(9, 12));
  expect(statuses).toEqual(['200', '200', '200', '429', '429']);
  expect(served.counted).toEqual([200, 200]);
});

test('a verify under a token that expires in between is refused', async () => {
  await using served = await serve();
  const rest = { productKey: 'EDITOR', accountId: null, label: null, createdAt: 0, lastUsedAt: null };
  const token = { tokenId: 'short', scopes: ['verify'], ...rest, expiresAt: Date.now() + 60_000 } as const;
  await served.write(({ tokens }) => tokens.add(token, served.app.digest('lk_tok_short')));
  await using kept = new KeptConnection(served.listeners.tcp);
  const bytes = verify('KEY-1', 'authorization: Bearer lk_tok_short');
  for (let time = 0; time < 2; time += 1) expect(await kept.send(bytes)).toContain(' 200 OK');
  using _ = vi.spyOn(Date, 'now').mockReturnValue(token.expiresAt);
  expect(await kept.send(bytes)).toContain('"code":"token_expired"');
});

test('a verify with two ids has an id of its own each time', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  const ids = (one: string, two: string): string =>
    `product-secret-key: ${secret}\r\nX-Request-Id: ${one}\r\nX-Request-Id: ${two}`;
  for (const bytes of [ids('a', 'b'), ids('a', 'b'), ids('c', 'd')]) {
    const answer = await kept.send(verify('KEY-1', bytes));
    expect(answer).toContain(' 200 OK');
    expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/im);
  }
});

test('a target that is none is refused also where its head is known', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let time = 0; time < 2; time += 1) expect(await kept.send(verify())).toContain(' 200 OK');
  expect(await kept.send(verify('KEY-1#x'))).toContain('"code":"malformed_request"');
});

test('a verify that comes while the process starts, leaves or drains goes its long way', async () => {
  await using served = await serve();
  await using kept = new KeptConnection(served.listeners.tcp);
  for (const [state, expected] of [
    ['starting', ' 503 '],
    ['draining', ' 503 '],
    ['leaving', 'connection: close'],
  ] as const) {
    served.readiness.now = 'ready';
    for (let time = 0; time < 2; time += 1) await kept.send(verify());
    const before = served.counted.length;
    served.readiness.now = state;
    expect((await kept.send(verify())).replace('Connection', 'connection')).toContain(expected);
    expect(served.counted).toHaveLength(before);
  }
});

test('verifies that are sent without waiting are answered in their order', async () => {
  await using served = await serve();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const socket = openSocket(served.listeners.tcp);
  let received = '';
  socket.on('data', (text: string) => (received += text));
  socket.write(verify());
  await expect.poll(() => received.match(/"uses"/g)?.length).toBe(1);
  let asked = 0;
  vi.spyOn(served.app.licensing, 'verify').mockImplementation(async () => {
    const uses = (asked += 1);
    await gates[uses - 1]?.promise;
    return done({
      license: {
        licenseKey: 'KEY-1',
        productKey: 'EDITOR',
        buyerEmail: 'a@example.com',
        uses,
        enabled: true,
        createdAt: 0,
      },
      productKey: 'EDITOR',
      provenance: { freshness: 'authoritative' },
    });
  });
  socket.write(verify() + verify());
  await expect.poll(() => asked).toBe(2);
  gates[1]?.resolve();
  await using http = httpClient(served.listeners.tcp);
  await http.get('/livez');
  expect(received.match(/"uses":\d/g)).toEqual(['"uses":0']);
  gates[0]?.resolve();
  await expect.poll(() => received.match(/"uses":\d/g)).toEqual(['"uses":0', '"uses":1', '"uses":2']);
  socket.destroy();
});

test('a verify whose caller leaves before the answer is told so, and counts as left', async () => {
  await using served = await serve();
  const socket = openSocket(served.listeners.tcp);
  socket.write(verify());
  await once(socket, 'data');
  const { promise, reject } = Promise.withResolvers<never>();
  const signals: AbortSignal[] = [];
  vi.spyOn(served.app.licensing, 'verify').mockImplementation((_, __, signal) => {
    signals.push(signal);
    return promise;
  });
  socket.write(verify());
  await expect.poll(() => signals.length).toBe(1);
  socket.resetAndDestroy();
  await expect.poll(() => signals[0]?.aborted).toBe(true);
  reject(new Error('given up'));
  await expect.poll(() => served.counted).toEqual([499]);
});
