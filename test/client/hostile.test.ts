import { once } from 'node:events';
import { linkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, expect, it, vi } from 'vitest';
import {
  AgentUnavailableError,
  ConfigurationError,
  connect,
  type ConnectOptions,
  type LatchkeyClient,
} from '../../src/client/index.ts';
import { startSandbox } from '../../src/testing.ts';
import { listen, type Listener } from '../support/network/listener.ts';
import { isWindows } from '../support/platform.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { socketPath } from '../support/network/socket-path.ts';

const licenseKey = 'WTKP4-66NL5-HMKQW-GFSCZ';
const answered = JSON.stringify({
  data: {
    license_key: licenseKey,
    product_link: 'RGsF',
    buyer_email: 'buyer@example.com',
    enabled: true,
    uses: 1,
    date: '2026-01-01T00:00:00Z',
  },
});

const listeners: Listener[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const listener of listeners.splice(0)) await listener[Symbol.asyncDispose]();
});

/** Returns the address of the server, which listens until the test ends. */
async function open(server: Server): Promise<string> {
  const listener = await listen(server);
  listeners.push(listener);
  return listener.url;
}

/** A server that answers every request with these bytes, and calls `hear` for each request. */
async function answering(text: string, hear: () => void = () => undefined): Promise<string> {
  return await open(
    createServer((socket) =>
      socket.on('data', () => {
        socket.write(text);
        hear();
      }),
    ),
  );
}

/** Fakes the clock, so that a deadline passes only if the test advances the clock. */
function holdTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
}

function ask(options: ConnectOptions): LatchkeyClient {
  return connect({ productSecret: 'the-secret', ...options });
}

const html = 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<htm';
const hostile = {
  'bytes that are no HTTP': 'garbage\r\n\r\n',
  'a page': html,
  'a refusal of its own': 'HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno',
  'a refusal with a code of its own':
    'HTTP/1.1 404 Not Found\r\ncontent-length: 28\r\n\r\n{"code":"license_not_found"}',
  'a redirect, whatever is in it': `HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: ${answered.length}\r\n\r\n${answered}`,
  'another protocol': 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
  'headers without end': `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`,
  'a body without end': `HTTP/1.1 200 OK\r\n\r\n${'a'.repeat(5 * 1024 * 1024)}`,
  'half a body': 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data":',
  nothing: '',
};
/** Whether the response may still continue, so that only the deadline ends the attempt. */
const isWaitedFor = (name: string): boolean => ['half a body', 'nothing'].includes(name);

it.each(Object.entries(hostile))(
  '%s from a server that is not an agent leaves the verdict undetermined',
  async (_, text) => {
    const program = ask({ url: await answering(text) });
    expect(await program.verify(licenseKey, { deadlineMs: 300 })).toMatchObject({
      verdict: 'undetermined',
      reason: 'agent_unavailable',
    });
  },
);

it.each(Object.entries(hostile))('a use that is answered by %s may have counted', async (name, text) => {
  holdTime();
  const asked = Promise.withResolvers<void>();
  const program = ask({ url: await answering(text, asked.resolve) });
  const used = program.use(licenseKey, { deadlineMs: 300 }).catch((error: unknown) => error);
  await asked.promise;
  if (isWaitedFor(name)) vi.advanceTimersByTime(300);
  const failed = await used;
  expect(failed).toBeInstanceOf(AgentUnavailableError);
  expect(failed).toMatchObject({ mayHaveCounted: true, idempotencyKey: expect.any(String) as string });
});

it.each([
  '{"data":null}',
  '{"data":[]}',
  '{"data":{"total":1,"lines":[null]}}',
  '{"data":{"total":1,"lines":[],"order":"1","redeemed_at":"today"}}',
])('the response %s is not a quote', async (body) => {
  const url = await open(createHttpServer((_, response) => response.end(body)));
  const program = ask({ url, apiKey: 'the-key' });
  await expect(program.quote({ code: 'MAY', items: [] })).rejects.toBeInstanceOf(AgentUnavailableError);
  await expect(program.redeem('1', { code: 'MAY', items: [] })).rejects.toMatchObject({
    mayHaveCounted: true,
  });
});

it('an error contains no license key', async () => {
  const url = await answering(`${licenseKey}\r\n\r\n`);
  holdTime();
  const failed = await ask({ url })
    .use(licenseKey, { deadlineMs: 300 })
    .catch((error: unknown) => error);
  const told = inspect(failed, { depth: 9, showHidden: true });
  expect(told).toContain('Parse Error');
  expect(told).not.toContain(licenseKey);
  expect(told).not.toContain('the-secret');
  expect(told).not.toContain('57 54 4b 50');
});

it('a server that took the port of an agent is left when the agent runs on another port', async () => {
  await using sandbox = await startSandbox();
  await using directory = temporaryDirectory();
  const point = (tcp: string): void => {
    writeFileSync(join(directory.path, 'listen.json'), JSON.stringify({ tcp }), { mode: 0o600 });
  };
  point(await answering(html));
  const program = ask({ stateDir: directory.path, productSecret: sandbox.productSecret });
  expect((await program.verify(licenseKey)).verdict).toBe('undetermined');
  point(sandbox.agent.url);
  expect((await program.verify(licenseKey)).verdict).toBe('valid');
});

// A pipe is gone with its process.
it.skipIf(isWindows)('a server on the port of a killed agent receives no secret', async () => {
  await using directory = temporaryDirectory();
  const socket = socketPath(directory.path);
  const killed = createServer().listen(socket);
  await once(killed, 'listening');
  // A kill leaves the file, a stop removes it.
  linkSync(socket, `${socket}.kept`);
  killed.close();
  linkSync(`${socket}.kept`, socket);
  let asked = 0;
  const stranger = createHttpServer((_, response) => {
    asked += 1;
    response.end();
  });
  const listening = { socket, tcp: await open(stranger) };
  writeFileSync(join(directory.path, 'listen.json'), JSON.stringify(listening), { mode: 0o600 });
  const said = await ask({ stateDir: directory.path }).verify(licenseKey);
  expect(said).toMatchObject({ verdict: 'undetermined', reason: 'agent_unavailable' });
  expect(asked).toBe(0);
});

it('a change that an agent may have recorded is not sent to another server', async () => {
  await using directory = temporaryDirectory();
  const socket = socketPath(directory.path, 'agent.sock');
  let taken = 0;
  const agent = createHttpServer((request) => {
    taken += 1;
    request.socket.destroy();
  }).listen(socket);
  await once(agent, 'listening');
  let asked = 0;
  const other = createHttpServer((_, response) => {
    asked += 1;
    response.end(answered);
  });
  const listening = { socket, tcp: await open(other) };
  writeFileSync(join(directory.path, 'listen.json'), JSON.stringify(listening), { mode: 0o600 });
  holdTime();
  const used = ask({ stateDir: directory.path }).use(licenseKey, { deadlineMs: 300 });
  await expect(used).rejects.toMatchObject({ mayHaveCounted: true });
  agent.close();
  expect(taken).toBeGreaterThan(0);
  expect(asked).toBe(0);
});

it('an invalid certificate in listen.json makes the agent unavailable', async () => {
  await using directory = temporaryDirectory();
  const listening = { tcp: 'https://127.0.0.1:1', certificate: 'no certificate' };
  writeFileSync(join(directory.path, 'listen.json'), JSON.stringify(listening), { mode: 0o600 });
  expect(await ask({ stateDir: directory.path }).verify(licenseKey)).toMatchObject({
    reason: 'agent_unavailable',
  });
});

it('finished calls leave no listener on a connection or on a signal', async () => {
  const warnings: string[] = [];
  const hear = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', hear);
  const url = await open(createHttpServer((_, response) => response.end(answered)));
  const program = ask({ url });
  const ending = new AbortController();
  const { signal } = ending;
  const listening = vi.spyOn(signal, 'addEventListener');
  for (let call = 0; call < 50; call += 1) await program.verify(licenseKey, { signal });
  await Promise.all(Array.from({ length: 50 }, () => program.verify(licenseKey, { signal })));
  process.off('warning', hear);
  expect(warnings).toEqual([]);
  expect(listening.mock.calls.length).toBeLessThanOrEqual(1);
  using ended = vi.spyOn(AbortController.prototype, 'abort');
  program.close();
  ending.abort();
  expect(ended.mock.contexts).toEqual([ending]);
});

it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 31, '5000', null])(
  'the invalid deadlineMs %j is rejected',
  async (given) => {
    const deadlineMs = given as number;
    const program = ask({ url: await answering(html) });
    await expect(program.verify(licenseKey, { deadlineMs })).rejects.toBeInstanceOf(ConfigurationError);
    await expect(program.use(licenseKey, { deadlineMs })).rejects.toThrow('deadlineMs');
  },
);

it.each([0, 0.5])('a deadline of %s ms is valid', async (deadlineMs) => {
  const program = ask({ url: await answering('') });
  expect((await program.verify(licenseKey, { deadlineMs })).verdict).toBe('undetermined');
});

it.each([null, 4711, '', 'ä', 'a\nb'])('the invalid idempotency key %j is rejected', async (value) => {
  const idempotencyKey = value as string;
  const used = ask({ url: await answering(html) }).use(licenseKey, { idempotencyKey });
  await expect(used).rejects.toBeInstanceOf(ConfigurationError);
  await expect(used).rejects.toMatchObject({ isTemporary: false });
});

it.each([
  [undefined, 'undefined'],
  [null, 'null'],
  [4711, 'number'],
])('a license key of another type is rejected: %s', async (value, called) => {
  const program = ask({ url: await answering(html) });
  const key = value as unknown as string;
  await expect(program.verify(key)).rejects.toBeInstanceOf(ConfigurationError);
  await expect(program.use(key)).rejects.toThrow(`The license key must be a string, not ${called}.`);
});

it('a unix: url without a path is rejected', async () => {
  await expect(ask({ url: 'unix:' }).verify(licenseKey)).rejects.toBeInstanceOf(ConfigurationError);
});

it.each([
  ['productSecret', 'ä'],
  ['productSecret', 'line\nbreak'],
  ['productSecret', 4711],
  ['token', 'two words'],
])('a credential that no header can carry is rejected without showing it: %s %j', async (name, secret) => {
  const failed = await connect({ url: await answering(''), [name]: secret })
    .verify(licenseKey)
    .catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(ConfigurationError);
  expect(String(failed)).toContain(name);
  expect(String(failed)).not.toContain(String(secret));
});

it('a secret of any printable ASCII characters is sent', async () => {
  const shown: unknown[] = [];
  const agent = createHttpServer(({ headers }, response) => {
    shown.push(headers['product-secret-key']);
    response.end(answered);
  });
  const said = await ask({ url: await open(agent), productSecret: 'two words ~!' }).verify(licenseKey);
  expect([said.verdict, shown]).toEqual(['valid', ['two words ~!']]);
});
