import { expect, test, vi } from 'vitest';
import { done } from '../../../src/domain/problem/problem.ts';
import type { LicenseService } from '../../../src/service/services.ts';
import { adminToken, limits } from '../../support/app/http-app.ts';
import { serveApp, type Served } from '../../support/app/http-served.ts';
import { CallerConnection } from '../../support/network/caller-connection.ts';
import { httpClient } from '../../support/network/raw-http.ts';
import { buildLicense } from '../../support/builders/store-builders.ts';

const listeners = ['tcp', 'tls', 'socket'] as const;
const license = buildLicense({ licenseKey: 'KEY', productKey: 'P', uses: 1 });
const answer = done({ license, productKey: 'P', provenance: { freshness: 'authoritative' as const } });

/** An agent whose upstream never answers, so that changes and lookups wait as long as possible. */
class StuckLicenseService implements LicenseService {
  waiting = 0;

  async verify(_: unknown, __: unknown, signal: AbortSignal): ReturnType<LicenseService['verify']> {
    await this.#untilEnded(signal);
    throw signal.reason;
  }

  async change(_: unknown, signal: AbortSignal): ReturnType<LicenseService['change']> {
    await this.#untilEnded(signal);
    return answer;
  }

  history(): ReturnType<LicenseService['history']> {
    return Promise.resolve(done({ changes: [], total: 0 }));
  }

  async #untilEnded(signal: AbortSignal): Promise<void> {
    this.waiting += 1;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    this.waiting -= 1;
  }
}

type Stuck = Served & { licenseService: StuckLicenseService; tokens: readonly string[] };

/** Serves such an agent, with the tokens of two callers. */
async function serveStuck(connections: number): Promise<Stuck> {
  const licenseService = new StuckLicenseService();
  const settings = { limits: { ...limits, connections } };
  const served = await serveApp({ licenseService, role: 'agent' }, settings);
  await using http = httpClient(served.listeners.tcp);
  const tokens: string[] = [];
  for (const label of ['one', 'another']) {
    const headers = { authorization: `Bearer ${adminToken}` };
    const json = { scopes: ['verify', 'use'], label };
    const { body } = await http.post('/admin/v1/tokens', { headers, json });
    tokens.push((body as { data: { token: string } }).data.token);
  }
  return { ...served, licenseService, tokens };
}

const status = `GET /statusz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;
const use = (token: string | undefined, prefer = 'Prefer: wait=30\r\n'): string =>
  `PUT /api/v2/license/usage HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n${prefer}` +
  'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 15\r\n\r\nlicense_key=KEY';
const verify = (token: string | undefined): string =>
  `GET /api/v2/license/verify?license_key=KEY HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;

type Asking = { connection: CallerConnection; head: Promise<string> };

/** Opens a connection and sends a request that waits. */
async function ask(
  { licenseService, listeners: open }: Stuck,
  kind: keyof Served['listeners'],
  request: string,
): Promise<Asking> {
  const connection = await CallerConnection.open(open[kind]);
  const before = licenseService.waiting;
  const head = connection.ask(request);
  await expect.poll(() => licenseService.waiting).toBe(before + 1);
  return { connection, head };
}

test.each(listeners)(
  'on a full listener (%s) a new caller replaces a caller that waits for the upstream',
  async (kind) => {
    await using served = await serveStuck(2);
    const first = await ask(served, kind, use(served.tokens[0], ''));
    const second = await ask(served, kind, use(served.tokens[0], ''));
    const caller = await CallerConnection.open(served.listeners[kind]);
    expect(await caller.ask(status)).toContain(' 200 ');
    expect(await first.head).toContain(' 200 ');
    expect((await first.head).toLowerCase()).toContain('connection: close');
    await first.connection.closed;
    expect(served.licenseService.waiting).toBe(1);
    second.connection.socket.destroy();
  },
);

test.each(listeners)('on a full listener (%s) a lookup that is replaced is answered 503', async (kind) => {
  await using served = await serveStuck(1);
  const waiting = await ask(served, kind, verify(served.tokens[0]));
  const caller = await CallerConnection.open(served.listeners[kind]);
  expect(await caller.ask(status)).toContain(' 200 ');
  expect(await waiting.head).toContain(' 503 ');
});

test('on a full listener, the credential with the most connections loses one', async () => {
  await using served = await serveStuck(3);
  const [one, another] = served.tokens;
  const oldest = await ask(served, 'tcp', use(one, ''));
  const second = await ask(served, 'tcp', use(another, ''));
  const third = await ask(served, 'tcp', use(another, ''));
  const caller = await CallerConnection.open(served.listeners.tcp);
  expect(await caller.ask(status)).toContain(' 200 ');
  await second.connection.closed;
  expect(await second.head).toContain(' 200 ');
  expect(served.licenseService.waiting).toBe(2);
  for (const { connection } of [oldest, third]) {
    expect(connection.socket.destroyed).toBe(false);
    connection.socket.destroy();
  }
});

test('callers that wait and do not read their responses hold at most as many additional connections', async () => {
  await using served = await serveStuck(2);
  const stuck: CallerConnection[] = [];
  for (let count = 0; count < 8; count += 1) {
    const connection = await CallerConnection.open(served.listeners.tcp);
    connection.socket.pause().write(use(served.tokens[0], ''));
    stuck.push(connection);
  }
  const caller = await CallerConnection.open(served.listeners.tcp);
  expect(await caller.ask(status)).toContain(' 200 ');
  for (const { socket } of stuck) socket.destroy();
});

test('waits by "Prefer" of one credential hold at most half of the places, and its oldest wait ends for a new one', async () => {
  await using served = await serveStuck(4);
  const [one, another] = served.tokens;
  const other = await ask(served, 'tcp', use(another));
  const first = await ask(served, 'tcp', use(one));
  const second = await ask(served, 'tcp', use(one));
  const third = await CallerConnection.open(served.listeners.tcp);
  void third.ask(use(one));
  expect(await first.head).toContain(' 200 ');
  expect((await first.head).toLowerCase()).toContain('connection: keep-alive');
  await expect.poll(() => served.licenseService.waiting).toBe(3);
  for (const { socket } of [other.connection, second.connection, third]) {
    expect(socket.destroyed).toBe(false);
    socket.destroy();
  }
});

test.each(listeners)(
  'on a full listener (%s) a wait ends before a connection is closed whose request is on its way',
  async (kind) => {
    await using served = await serveStuck(2);
    const waiting = await ask(served, kind, use(served.tokens[0], ''));
    const fresh = await CallerConnection.open(served.listeners[kind]);
    const caller = await CallerConnection.open(served.listeners[kind]);
    expect(await caller.ask(status)).toContain(' 200 ');
    expect(await waiting.head).toContain(' 200 ');
    expect(await fresh.ask(status)).toContain(' 200 ');
  },
);

test('on a full listener, a connection that was idle for five seconds is closed before a wait ends', async () => {
  await using served = await serveStuck(2);
  const waiting = await ask(served, 'tcp', use(served.tokens[0], ''));
  const idle = await CallerConnection.open(served.listeners.tcp);
  expect(await idle.ask(status)).toContain(' 200 ');
  using _ = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 5_000);
  const caller = await CallerConnection.open(served.listeners.tcp);
  expect(await caller.ask(status)).toContain(' 200 ');
  await idle.closed;
  expect(served.licenseService.waiting).toBe(1);
  waiting.connection.socket.destroy();
});
