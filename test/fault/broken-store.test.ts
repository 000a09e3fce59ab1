import { spawn, spawnSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { credentials, secret, startAgentHarness } from '../support/harness/agent-harness.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient, type HttpResponse, type HttpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patience } from '../support/patience.ts';

const authority = { listen: { tcp: '127.0.0.1:0' } };

/** An authority's process with `count` license keys of one product: `KEY-0` and so on. */
async function startWithKeys(directory: string, count: number): Promise<DaemonProcess> {
  const daemon = await startDaemonProcess(directory, authority);
  await using client = httpClient({ tcp: daemon.tcp });
  const token = readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}` };
  const product = { name: 'Editor', product_key: 'product', secret };
  expect((await client.post('/admin/v1/products', { headers, json: product })).status).toBe(201);
  const purchases = Array.from({ length: count }, (_, index) => ({
    product_key: 'product',
    buyer_email: 'buyer@example.com',
    license_key: `KEY-${index}`,
  }));
  const made = await Promise.all(
    purchases.map(async (json) => (await client.post('/admin/v1/purchases', { headers, json })).status),
  );
  expect(new Set(made)).toEqual(new Set([201]));
  return daemon;
}

/** Uses a license key; `under` is an optional idempotency key. */
function use(client: HttpClient, key: string, under?: string): Promise<HttpResponse> {
  const headers = { ...credentials, ...(under !== undefined && { 'idempotency-key': under }) };
  return client.put('/api/v2/license/usage', { headers, form: { license_key: key } });
}

/** Corrupts the last pages of a closed file. */
function corruptEnd(path: string): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(3 * 4096, 0xa5), 0, 3 * 4096, fstatSync(file).size - 3 * 4096);
  closeSync(file);
}

test('a daemon detects a damaged store after its start, stops writing to it, and logs what to do', async () => {
  await using directory = temporaryDirectory();
  {
    await using before = await startWithKeys(directory.path, 300);
    before.signal('SIGTERM');
    expect(await before.ended).toBe(0);
  }
  corruptEnd(join(directory.path, 'state', 'latchkey.db'));
  await using daemon = await startDaemonProcess(directory.path, authority);
  const line = await daemon.said('the store is damaged: changes are refused');

  expect(line).toMatchObject({ part: 'store', level: 'error' });
  const file = join(directory.path, 'state', 'latchkey.db');
  expect(line['hint']).toContain(file);
  expect(line['hint']).toContain('latchkey restore');
  await using client = httpClient({ tcp: daemon.tcp });
  const ready = await client.get('/readyz');
  expect([ready.status, ready.body]).toEqual([503, { status: 'unavailable', reasons: ['store_damaged'] }]);
  expect((await client.get('/livez')).status).toBe(200);
  const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}` };
  const metrics = await client.get('/metrics', { headers });
  expect(String(metrics.body)).toMatch(/^latchkey_storage_damaged 1$/m);
  expect((await client.get('/statusz', { headers })).body).toMatchObject({ storage: 'damaged' });
  const overview = await client.get('/admin/v1/overview', { headers });
  expect(overview.body).toMatchObject({
    data: { storage: 'damaged', attention: [{ code: 'storage_damaged', level: 'fail' }] },
  });
  const refused = await use(client, 'KEY-0');
  expect([refused.status, (refused.body as { code: string }).code]).toEqual([503, 'storage_failed']);
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
});

const hasTracer = spawnSync('strace', ['-V']).status === 0 && process.getuid?.() === 0;

/** Makes the given system calls of a process fail as on a broken disk, starting with call number `from`. */
async function breakDisk(pid: number, calls: string, from = 1): Promise<Disposable> {
  const inject = [
    '-f',
    '-p',
    String(pid),
    '-e',
    `inject=${calls}:error=EIO:when=${from}+`,
    '-o',
    '/dev/null',
  ];
  const tracer = spawn('strace', inject, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  tracer.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await vi.waitFor(() => expect(said).toContain('attached'), patience);
  return { [Symbol.dispose]: () => void tracer.kill('SIGKILL') };
}

test.runIf(hasTracer).each([
  ['write', 'pwrite64'],
  ['sync', 'fsync,fdatasync'],
])(
  'a commit that the disk fails to %s is uncertain and ends the process with 74, and a repetition counts once (skipped without strace)',
  async (_, calls) => {
    await using directory = temporaryDirectory();
    await using daemon = await startWithKeys(directory.path, 1);
    await using client = httpClient({ tcp: daemon.tcp });
    expect((await use(client, 'KEY-0')).status).toBe(200);
    using _broken = await breakDisk(daemon.pid, calls);
    const refused = await use(client, 'KEY-0', 'once');
    expect(refused).toMatchObject({
      status: 503,
      body: { code: 'storage_failed', detail: 'It may have been carried out, or not.' },
    });
    expect(await daemon.ended).toBe(74);
    const { err } = await daemon.said(
      'the storage failed: exiting, so that the supervisor restarts the process',
    );
    expect(err).toMatchObject({ cause: { message: 'disk I/O error' } });
    await using again = await startDaemonProcess(directory.path, authority);
    await using other = httpClient({ tcp: again.tcp });
    expect(await use(other, 'KEY-0', 'once')).toMatchObject({ status: 200, body: { data: { uses: 2 } } });
    const { body } = await other.get('/api/v2/license/verify?license_key=KEY-0', { headers: credentials });
    expect(body).toMatchObject({ data: { uses: 2 } });
  },
);

test.runIf(hasTracer)(
  'an agent whose disk fails while it sends changes ends with 74, and then sends each change once (skipped without strace)',
  async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
    await using harness = await startAgentHarness({ licenses: keys });
    const { agent, upstream } = harness;
    await agent.ask('/admin/v1/sync/pause', 'post');
    const used = await Promise.all(keys.map((key) => agent.change('usage', key)));
    expect(new Set(used.map(({ status }) => status))).toEqual(new Set([200]));
    using _broken = await breakDisk(agent.process.pid, 'fsync,fdatasync', 2);
    // Whether the resume is committed or uncertain depends on the other commits by then.
    await agent.ask('/admin/v1/sync/resume', 'post').catch(() => undefined);
    expect(await agent.process.ended).toBe(74);
    const successor = await harness.startAgent();
    await successor.ask('/admin/v1/sync/resume', 'post');
    await successor.atRest();
    expect(keys.map((key) => upstream.countsOf(key).net)).toEqual(keys.map(() => 1));
  },
);

test('an agent that can no longer read its database ends with 74', async () => {
  await using directory = temporaryDirectory();
  const upstream = { base_url: 'http://127.0.0.1:1' };
  const products = [{ key: 'product', secret }];
  await using daemon = await startDaemonProcess(directory.path, { ...authority, upstream, products });
  truncateSync(join(directory.path, 'state', 'latchkey.db'));
  await using client = httpClient({ tcp: daemon.tcp });
  // Whether and how the use is answered depends on timing.
  await use(client, 'KEY').catch(() => undefined);
  expect(await daemon.ended).toBe(74);
});

test('a process whose shared-memory file was truncated ends at once, so that its supervisor restarts it', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startWithKeys(directory.path, 1);
  await using client = httpClient({ tcp: daemon.tcp });
  // The system raises SIGBUS for the pages that SQLite has mapped, as it does when a quota refuses a page.
  truncateSync(join(directory.path, 'state', 'latchkey.db-shm'));
  await use(client, 'KEY-0').catch(() => undefined);
  expect(await daemon.ended).toBe(null);
  await using again = await startDaemonProcess(directory.path, authority);
  await using other = httpClient({ tcp: again.tcp });
  const { body } = await other.get('/api/v2/license/verify?license_key=KEY-0', { headers: credentials });
  expect(body).toMatchObject({ data: { uses: 0 } });
});
