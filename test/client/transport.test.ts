import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { connect, type ConnectOptions, type LatchkeyClient } from '../../src/client/index.ts';
import { certificate, privateKey } from '../support/network/certificate.ts';
import { listen, type Listener } from '../support/network/listener.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const license = {
  license_key: 'KEY',
  product_link: 'RGsF',
  buyer_email: 'buyer@example.com',
  enabled: true,
  uses: 1,
  date: '2026-01-01T00:00:00Z',
};
const answer: RequestListener = (_, response) => response.end(JSON.stringify({ data: license }));

const listeners: Listener[] = [];
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener[Symbol.asyncDispose]();
});

async function open(server: Parameters<typeof listen>[0]): Promise<Listener> {
  const listener = await listen(server);
  listeners.push(listener);
  return listener;
}

const ask = (options: ConnectOptions): LatchkeyClient => connect({ productSecret: 'the-secret', ...options });

it.each(['', '/'])('requests go below the path of the url, which may end in "%s"', async (end) => {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    answer(request, response);
  });
  const { url } = await open(server);
  const said = await ask({ url: `${url}/licenses${end}` }).verify('KEY');
  expect([said.verdict, asked]).toEqual(['valid', ['/licenses/api/v2/license/verify?license_key=KEY']]);
});

it('an agent is reached by an IPv6 address', async () => {
  await using server: Server = createServer(answer);
  await new Promise((resolve) => server.listen(0, '::1', () => resolve(null)));
  const { port } = server.address() as { port: number };
  const program = ask({ url: `http://[::1]:${port}` });
  expect((await program.verify('KEY')).verdict).toBe('valid');
  program.close();
});

it('an agent is reached by TCP if this user may not use its socket', async () => {
  await using directory = temporaryDirectory();
  const { url } = await open(createServer(answer));
  const listening = { socket: join(directory.path, 'elsewhere', 'latchkey.sock'), tcp: url };
  writeFileSync(join(directory.path, 'listen.json'), JSON.stringify(listening), { mode: 0o600 });
  expect((await ask({ stateDir: directory.path }).verify('KEY')).verdict).toBe('valid');
});

it.each([
  ['a plain key', 'order-7', {}, '"order-7"', undefined],
  [
    'a key with spaces, quotation marks and backslashes',
    String.raw`a "b" \c`,
    {},
    String.raw`"a \"b\" \\c"`,
    undefined,
  ],
  ['the longest key', 'k'.repeat(255), {}, `"${'k'.repeat(255)}"`, undefined],
  ['seconds to wait, rounded up', 'one', { waitMs: 1_001 }, '"one"', 'wait=2'],
  ['less than a second to wait', 'one', { waitMs: 1 }, '"one"', 'wait=1'],
  ['the longest wait', 'one', { waitMs: 30_000 }, '"one"', 'wait=30'],
])('a change is sent with %s', async (...[, idempotencyKey, options, key, prefer]) => {
  const shown: unknown[] = [];
  const server = createServer((request, response) => {
    shown.push(request.headers['idempotency-key'], request.headers['prefer']);
    answer(request, response);
  });
  const { url } = await open(server);
  await ask({ url }).use('KEY', { idempotencyKey, ...options });
  expect(shown).toEqual([key, prefer]);
});

it('an idempotency key of 256 characters is rejected', async () => {
  const { url } = await open(createServer(answer));
  const used = ask({ url }).use('KEY', { idempotencyKey: 'k'.repeat(256) });
  await expect(used).rejects.toThrow('1 to 255 printable ASCII characters');
});

it.each([
  [408, 'request_timeout'],
  [429, 'rate_limited'],
  [500, 'internal_error'],
  [503, 'starting'],
])('a verify is undetermined while the agent is busy: %s %s', async (status, code) => {
  const problem = JSON.stringify({ code, title: '', detail: '' });
  const { url } = await open(createServer((_, response) => response.writeHead(status).end(problem)));
  expect(await ask({ url }).verify('KEY')).toMatchObject({
    verdict: 'undetermined',
    reason: 'busy',
    error: { code, status },
  });
});

it.each([
  ['enabled', 'false'],
  ['uses', '1'],
  ['license_key', null],
  ['product_link', 7],
  ['buyer_email', undefined],
  ['date', 'yesterday'],
])('a verify is undetermined if the %s of the response is %j', async (name, value) => {
  const data = { ...license, [name]: value };
  const { url } = await open(createServer((_, response) => response.end(JSON.stringify({ data }))));
  expect(await ask({ url }).verify('KEY')).toMatchObject({ reason: 'agent_unavailable' });
});

it('the freshness of an answer comes from its headers', async () => {
  const { url } = await open(
    createServer((request, response) => {
      response.setHeader('Latchkey-Freshness', 'stale').setHeader('Latchkey-Pending', '2');
      response.setHeader('Latchkey-Confirmed-At', '2026-01-02T00:00:00Z');
      response.setHeader('Latchkey-Grace-Until', '2026-01-16T00:00:00Z');
      answer(request, response);
    }),
  );
  const worth = {
    freshness: 'stale',
    confirmedAt: new Date('2026-01-02T00:00:00Z'),
    graceUntil: new Date('2026-01-16T00:00:00Z'),
    pending: 2,
  };
  expect(await ask({ url }).verify('KEY')).toMatchObject(worth);
  expect(await ask({ url }).use('KEY')).toMatchObject(worth);
});

it('an unknown freshness counts as grace, and an unreadable number of pending changes as 0', async () => {
  const { url } = await open(
    createServer((request, response) => {
      response.setHeader('Latchkey-Freshness', 'eternal').setHeader('Latchkey-Pending', 'many');
      answer(request, response);
    }),
  );
  expect(await ask({ url }).verify('KEY')).toMatchObject({
    freshness: 'grace',
    pending: 0,
    confirmedAt: null,
  });
});

it.each([
  ['TCP', 'http', createServer(answer)],
  ['TLS', 'https', createTlsServer({ cert: certificate, key: privateKey }, answer)],
])('a connection over %s is reused by the next call and closed by close()', async (_, scheme, server) => {
  await using directory = temporaryDirectory();
  const connections: Socket[] = [];
  // The server itself closes none.
  server.keepAliveTimeout = 0;
  server.on('connection', (socket: Socket) => connections.push(socket));
  const { port } = await open(server);
  const listening = { tcp: `${scheme}://127.0.0.1:${port}`, certificate };
  writeFileSync(join(directory.path, 'listen.json'), JSON.stringify(listening), { mode: 0o600 });
  const program = ask({ stateDir: directory.path });
  for (const key of ['ONE', 'TWO']) expect((await program.verify(key)).verdict).toBe('valid');
  expect(connections).toHaveLength(1);
  program.close();
  await expect.poll(() => connections[0]?.destroyed).toBe(true);
});

it.each([
  ['of 1 MiB is read', 2 ** 20, 'valid'],
  ['of more than 4 MiB is none', 2 ** 22, 'undetermined'],
])('a response %s', async (_, length, verdict) => {
  const body = JSON.stringify({ data: license, more: 'x'.repeat(length) });
  const { url } = await open(createServer((__, response) => response.end(body)));
  expect(await ask({ url }).verify('KEY')).toMatchObject({ verdict });
});

it('a cart is sent in the form of the API, and a refusal names each invalid parameter', async () => {
  const sent: unknown[] = [];
  const errors = [{ parameter: 'currency', code: 'malformed', detail: 'currency must be ISO 4217.' }];
  const problem = { code: 'parameters_invalid', title: 'Not valid', detail: 'Not valid: currency.', errors };
  const server = createServer((request, response) => {
    request.on('data', (body: Buffer) => sent.push(JSON.parse(body.toString('utf8'))));
    request.on('end', () => response.writeHead(422).end(JSON.stringify(problem)));
  });
  const { url } = await open(server);
  const item = { productKey: 'P', amount: 500, quantity: 2, collectionIds: ['C'], recurring: true };
  const cart = { code: 'MAY', currency: 'EUR', items: [item, { productKey: 'Q', amount: 1 }] };
  const quoted = ask({ url, apiKey: 'the-key' }).quote(cart);
  await expect(quoted).rejects.toMatchObject({
    name: 'ProblemError',
    message: 'Not valid (parameters_invalid): Not valid: currency.',
    faults: errors,
  });
  const first = { product_key: 'P', amount: 500, quantity: 2, collection_ids: ['C'], recurring: true };
  const items = [first, { product_key: 'Q', amount: 1 }];
  expect(sent).toEqual([{ code: 'MAY', currency: 'EUR', items }]);
});
