import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { patience } from '../support/patience.ts';
import { credentials, secret, startHarness } from '../support/harness/agent-harness.ts';
import { spawnDaemon, startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { KeptConnection } from '../support/network/kept-connection.ts';
import { every, hang, holdResponse, movesCounter } from '../support/harness/plain-upstream.ts';
import { httpClient, sendRaw } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const keys = Array.from({ length: 16 }, (_, index) => `KEY-${index}`);
const authority = { listen: { tcp: '127.0.0.1:0' } };

async function stockCatalogue(daemon: DaemonProcess, directory: string): Promise<void> {
  await using client = httpClient({ tcp: daemon.tcp });
  const token = readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}` };
  const json = { name: 'Editor', product_key: 'product', secret };
  expect((await client.post('/admin/v1/products', { headers, json })).status).toBe(201);
  for (const key of keys) {
    const purchase = { product_key: 'product', buyer_email: 'buyer@example.com', license_key: key };
    expect((await client.post('/admin/v1/purchases', { headers, json: purchase })).status).toBe(201);
  }
}

/** Records uses of a key one after the other on one connection, until a use is refused or cut off. */
async function useUntilRefused(daemon: DaemonProcess, key: string, onResponse: () => void): Promise<string> {
  await using client = httpClient({ tcp: daemon.tcp });
  for (;;) {
    try {
      const { status, headers } = await client.put('/api/v2/license/usage', {
        headers: credentials,
        form: { license_key: key },
      });
      if (status !== 200) return `${status} ${headers['retry-after']}`;
      onResponse();
    } catch {
      return 'cut';
    }
  }
}

test('after SIGTERM under load no answered write is lost, later requests are refused, and the exit code is 0', async () => {
  await using directory = temporaryDirectory();
  const answered = new Map<string, number>();
  {
    await using daemon = await startDaemonProcess(directory.path, authority);
    await stockCatalogue(daemon, directory.path);
    const count = (key: string) => () => answered.set(key, (answered.get(key) ?? 0) + 1);
    const callers = [...keys, ...keys, ...keys].map((key) => useUntilRefused(daemon, key, count(key)));
    await vi.waitFor(() => expect(Math.max(...answered.values())).toBeGreaterThan(20), patience);
    daemon.signal('SIGTERM');
    const endings = new Set(await Promise.all(callers));
    expect([...endings].filter((ending) => !['503 1', 'cut'].includes(ending))).toEqual([]);
    expect(await daemon.ended).toBe(0);
  }
  await using again = await startDaemonProcess(directory.path, authority);
  await using client = httpClient({ tcp: again.tcp });
  for (const key of keys) {
    const { body } = await client.get(`/api/v2/license/verify?license_key=${key}`, { headers: credentials });
    expect((body as { data: { uses: number } }).data.uses, key).toBe(answered.get(key));
  }
});

test('a draining daemon answers probes, refuses new requests and finishes old requests', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const answering = Promise.withResolvers<void>();
  harness.upstream.fault = every(holdResponse(answering.promise), movesCounter);
  const waiting = agent.change('usage', 'KEY', { prefer: 'wait=30' });
  await harness.upstream.until(() => harness.upstream.countsOf('KEY').usages === 1);
  // Neither an idle connection nor half a request may delay the end.
  const begun = ['', 'GET /livez HTTP/1.1\r\nhost:'].map((bytes) =>
    sendRaw({ tcp: agent.process.tcp }, bytes),
  );
  agent.process.signal('SIGTERM');
  await agent.process.said('draining');

  const ready = await agent.client.get('/readyz');
  expect([ready.status, ready.body]).toEqual([503, { status: 'unavailable', reasons: ['draining'] }]);
  expect((await agent.client.get('/livez')).status).toBe(200);
  const refused = await agent.verify('KEY');
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
  expect(refused.body).toMatchObject({ code: 'draining' });

  answering.resolve();
  const finished = await waiting;
  expect([finished.status, finished.headers['latchkey-pending']]).toEqual([200, '0']);
  expect(await agent.process.ended).toBe(0);
  for (const { ending } of await Promise.all(begun)) expect(ending).not.toBe('deadline');
});

test('a second signal ends a draining daemon at once with exit code 1', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  harness.upstream.fault = every(hang(), movesCounter);
  const answered = agent.change('usage', 'KEY', { prefer: 'wait=30' }).then(
    () => true,
    () => false,
  );
  await harness.upstream.until(() => harness.upstream.countsOf('KEY').usages === 1);
  agent.process.signal('SIGTERM');
  await agent.process.said('draining');
  // A second signal within 500 ms counts as a repetition of the first signal.
  const again = setInterval(() => agent.process.signal('SIGTERM'), 200);
  const code = await agent.process.ended;
  clearInterval(again);
  expect([code, await answered]).toEqual([1, false]);
});

/**
 * A process that received SIGTERM and waits for proxies to notice, with a connection that was used before.
 */
async function createLeaving(directory: string, delay: string, environment: Record<string, string> = {}) {
  await using starting = new AsyncDisposableStack();
  const listen = { tcp: '127.0.0.1:0', drain_delay: delay };
  const daemon = starting.use(await startDaemonProcess(directory, { listen }, environment));
  await stockCatalogue(daemon, directory);
  const kept = starting.use(new KeptConnection({ tcp: daemon.tcp }));
  const credential = Object.entries(credentials).map(([name, value]) => `${name}: ${value}`);
  const head = ['GET /api/v2/license/verify?license_key=KEY-0 HTTP/1.1', 'Host: localhost', ...credential];
  const verify = () => kept.send(`${head.join('\r\n')}\r\n\r\n`);
  // The third response is a cached one, like the second.
  for (let time = 0; time < 3; time += 1) expect(await verify()).not.toMatch(/^connection: close/im);
  daemon.signal('SIGTERM');
  await daemon.said('draining');
  const owned = starting.move();
  return { daemon, verify, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test('with drain_delay a stopping daemon is not ready at once, and answers requests until a second signal', async () => {
  await using directory = temporaryDirectory();
  await using leaving = await createLeaving(directory.path, '10m');
  const { daemon, verify } = leaving;
  await using client = httpClient({ tcp: daemon.tcp });
  const ready = await client.get('/readyz');
  expect([ready.status, ready.body]).toEqual([503, { status: 'unavailable', reasons: ['draining'] }]);
  expect((await client.get('/livez')).status).toBe(200);
  for (let time = 0; time < 2; time += 1) {
    const answer = await verify();
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/^connection: close\r$/im);
  }
  const used = await client.put('/api/v2/license/usage', {
    headers: credentials,
    form: { license_key: 'KEY-0' },
  });
  expect(used.status).toBe(200);
  const isHurried = (): boolean =>
    daemon.lines.some(({ msg }) => msg === 'draining without waiting for listen.drain_delay');
  await vi.waitFor(
    () => {
      // A second signal within 500 ms counts as a repetition of the first signal.
      daemon.signal('SIGTERM');
      expect(isHurried()).toBe(true);
    },
    { ...patience, interval: 200 },
  );
  expect(await daemon.ended).toBe(0);
});

test('after drain_delay the daemon drains, and it has notified the service manager of the longer stop', async () => {
  await using directory = temporaryDirectory();
  const manager = fakeServiceManager(directory.path);
  const environment = { PATH: `${manager.path}:${process.env['PATH']}`, NOTIFY_SOCKET: '@nowhere' };
  await using leaving = await createLeaving(directory.path, '2s', environment);
  const { daemon } = leaving;
  expect(await daemon.ended).toBe(0);
  const [leftAt = 0, stoppedAt = 0] = ['draining', 'stopped'].map((said) =>
    Date.parse(String(daemon.lines.find(({ msg }) => msg === said)?.['time'])),
  );
  expect(stoppedAt - leftAt).toBeGreaterThanOrEqual(1_990);
  expect(manager.told().at(-1)).toBe('STOPPING=1 EXTEND_TIMEOUT_USEC=17000000');
});

/** A directory for PATH with a `systemd-notify` that records its arguments. */
function fakeServiceManager(directory: string): { path: string; told: () => string[] } {
  const path = join(directory, 'bin');
  const told = join(directory, 'told');
  mkdirSync(path);
  writeFileSync(join(path, 'systemd-notify'), `#!/bin/sh\necho "$@" >> ${told}\n`);
  chmodSync(join(path, 'systemd-notify'), 0o755);
  return { path, told: () => (existsSync(told) ? readFileSync(told, 'utf8').trim().split('\n') : []) };
}

test('the daemon notifies the service manager when it is ready, reloads and stops', async () => {
  await using directory = temporaryDirectory();
  const manager = fakeServiceManager(directory.path);
  await using daemon = await startDaemonProcess(directory.path, authority, {
    PATH: `${manager.path}:${process.env['PATH']}`,
    NOTIFY_SOCKET: '@nowhere',
  });
  await vi.waitFor(() => expect(manager.told()).toEqual(['READY=1']), patience);
  daemon.signal('SIGHUP');
  await vi.waitFor(() => expect(manager.told()).toEqual(['READY=1', 'RELOADING=1', 'READY=1']), patience);
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
  expect(manager.told().at(-1)).toBe('STOPPING=1');
});

test('without systemd-notify the daemon runs and logs that it is missing', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startDaemonProcess(directory.path, authority, {
    PATH: directory.path,
    NOTIFY_SOCKET: '@nowhere',
  });
  const line = await daemon.said('systemd-notify cannot be run: the service manager gets no notification');
  expect(line).toMatchObject({ part: 'daemon' });
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
});

test('SIGTERM ends a starting daemon with exit code 0', async () => {
  await using directory = temporaryDirectory();
  const upstream = { base_url: 'http://nowhere.invalid' };
  await using daemon = spawnDaemon(directory.path, { listen: { tcp: '127.0.0.1:0' }, upstream });
  await daemon.said('the configuration is not safe');
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
  expect(daemon.lines.at(-1)).toMatchObject({ msg: 'stopped' });
});
