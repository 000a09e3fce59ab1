import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { Agent, productKey, secret } from '../support/harness/agent-harness.ts';
import { ownProgram } from '../support/process/command-line.ts';
import { spawnDaemon, startDaemonProcess } from '../support/process/daemon-process.ts';
import { freePort } from '../support/network/free-port.ts';
import { hang, startPlainUpstream, type PlainUpstream } from '../support/harness/plain-upstream.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { canMount, smallDisk, type SmallDisk } from '../support/process/small-disk.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patience } from '../support/patience.ts';

async function startAgent({ path }: SmallDisk, upstream: PlainUpstream): Promise<Agent> {
  const configuration = {
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url: upstream.url, timeout: '1h', probe: '100ms' },
    products: [{ key: productKey, secret }],
    sync: {
      rate: '1000',
      reconcile_after: '300ms',
      backoff: { first: '50ms', max: '200ms' },
      breaker: { open: '100ms' },
    },
    metrics: { open: true },
  };
  return new Agent(await startDaemonProcess(path, configuration), path);
}

async function upstreamWith(licenseKey: string): Promise<PlainUpstream> {
  const license = { licenseKey, productKey, buyerEmail: 'buyer@example.com' };
  return await startPlainUpstream({
    apiKey: 'api-key',
    products: [{ productKey, secret }],
    licenses: [license],
  });
}

async function isStorageFull(agent: Agent): Promise<string | undefined> {
  const { body } = await agent.client.get('/metrics');
  return /^latchkey_storage_full (\d)$/m.exec(String(body))?.[1];
}

/** The storage state in `/statusz`. */
async function storageOf(agent: Agent, disk: SmallDisk): Promise<unknown> {
  const token = readFileSync(join(disk.path, 'state', 'admin.token'), 'utf8').trim();
  const { body } = await agent.client.get('/statusz', { headers: { authorization: `Bearer ${token}` } });
  return (body as { storage: unknown }).storage;
}

/** Uses the key until the agent answers 507; returns how many uses the agent accepted. */
async function useUntilFull(agent: Agent, licenseKey: string): Promise<number> {
  for (let taken = 0; taken < 10_000; taken += 1) {
    const { status } = await agent.change('usage', licenseKey);
    if (status === 507) return taken;
    expect(status).toBe(200);
  }
  throw new Error('the disk was never full');
}

async function takesUsesAgain(agent: Agent, licenseKey: string): Promise<void> {
  await vi.waitFor(async () => expect((await agent.change('usage', licenseKey)).status).toBe(200), patience);
}

test.runIf(canMount)(
  'on a full disk an agent refuses changes, keeps verifying, records deliveries, and recovers by itself (skipped where mounting is not allowed)',
  async () => {
    await using disk = smallDisk(32 * 1024);
    await using upstream = await upstreamWith('KEY');
    await using agent = await startAgent(disk, upstream);
    await agent.learn(['KEY']);
    const reserve = join(disk.path, 'state', 'latchkey.reserve');
    expect(existsSync(reserve)).toBe(true);

    await upstream.stop();
    disk.fill(1024);
    let taken = await useUntilFull(agent, 'KEY');
    expect(taken).toBeGreaterThan(0);
    expect(existsSync(reserve)).toBe(false);
    await agent.process.said('the disk is full: changes are refused until there is free space');
    expect(await isStorageFull(agent)).toBe('1');
    expect(await storageOf(agent, disk)).toBe('full');
    const verified = await agent.verify('KEY');
    expect([verified.status, (verified.body as { data: { uses: number } }).data.uses]).toEqual([200, taken]);
    expect((await agent.client.get('/readyz')).status).toBe(200);

    await upstream.start();
    await agent.atRest();
    expect(upstream.countsOf('KEY').net).toBe(taken);
    const refused = await agent.change('usage', 'KEY');
    expect([refused.status, refused.body]).toMatchObject([507, { code: 'storage_full' }]);

    disk.clear();
    await takesUsesAgain(agent, 'KEY');
    taken += 1;
    await agent.process.said('the disk has free space again: changes are accepted');
    expect(existsSync(reserve)).toBe(true);
    expect(await isStorageFull(agent)).toBe('0');
    expect(await storageOf(agent, disk)).toBe('ok');
    await agent.atRest();
    expect(upstream.countsOf('KEY').net).toBe(taken);
    agent.process.signal('SIGTERM');
    expect(await agent.process.ended).toBe(0);
  },
);

test.runIf(canMount)(
  'on a disk without a free byte a reload does not end the agent, and is recorded once there is space (skipped where mounting is not allowed)',
  async () => {
    await using disk = smallDisk(32 * 1024);
    await using upstream = await upstreamWith('KEY');
    await using agent = await startAgent(disk, upstream);
    await agent.learn(['KEY']);
    await upstream.stop();
    disk.fill(0);
    await useUntilFull(agent, 'KEY');
    // Fills the space of the reserve file, too.
    disk.fill(0);
    agent.process.signal('SIGHUP');
    await agent.process.said('the configuration was reloaded');
    for (let time = 0; time < 100; time += 1) expect((await agent.verify('KEY')).status).toBe(200);
    expect((await agent.change('usage', 'KEY')).status).toBe(507);
    disk.clear();
    await takesUsesAgain(agent, 'KEY');
    agent.process.signal('SIGTERM');
    expect(await agent.process.ended).toBe(0);
  },
);

test.runIf(canMount)(
  'on a disk without a free byte a stop is not reported as a storage failure, and keeps the changes whose result could not be recorded (skipped where mounting is not allowed)',
  async () => {
    await using disk = smallDisk(32 * 1024);
    await using upstream = await upstreamWith('KEY');
    {
      await using agent = await startAgent(disk, upstream);
      await agent.learn(['KEY']);
      upstream.fault = ({ kind }) => (kind === 'usage' ? hang(true) : undefined);
      expect((await agent.change('usage', 'KEY')).status).toBe(200);
      await upstream.until(() => upstream.countsOf('KEY').net === 1);
      disk.fill(0);
      await useUntilFull(agent, 'KEY');
      // Fills the space of the reserve file, too.
      disk.fill(0);
      await upstream.stop();
      agent.process.signal('SIGTERM');
      expect(await agent.process.ended).toBe(0);
      expect(agent.process.lines.filter(({ level }) => level === 'fatal')).toEqual([]);
    }
    disk.clear();
    upstream.fault = () => undefined;
    await upstream.start();
    await using successor = await startAgent(disk, upstream);
    await successor.atRest();
    expect(upstream.countsOf('KEY').net).toBe(1);
  },
);

test.runIf(canMount)(
  'an agent starts on a disk that became full while it was stopped (skipped where mounting is not allowed)',
  async () => {
    await using disk = smallDisk(32 * 1024);
    await using upstream = await upstreamWith('KEY');
    {
      await using before = await startAgent(disk, upstream);
      await before.learn(['KEY']);
      await before.kill();
    }
    disk.fill(0);
    await using agent = await startAgent(disk, upstream);
    expect((await agent.verify('KEY')).status).toBe(200);
    expect((await agent.change('usage', 'KEY')).status).toBe(507);
    disk.clear();
    await takesUsesAgain(agent, 'KEY');
  },
);

test.runIf(canMount)(
  'a start on a disk without a free byte or a reserve file names the disk and the reason (skipped where mounting is not allowed)',
  async () => {
    await using disk = smallDisk(32 * 1024);
    {
      await using before = await startDaemonProcess(disk.path, { listen: { tcp: '127.0.0.1:0' } });
      before.signal('SIGTERM');
      await before.ended;
    }
    rmSync(join(disk.path, 'state', 'latchkey.reserve'));
    disk.fill(0);
    await using daemon = spawnDaemon(disk.path, { listen: { tcp: '127.0.0.1:0' } });
    expect(await daemon.ended).toBe(1);
    expect(daemon.complaints).toBe(
      `latchkey: The state directory ${disk.path}/state cannot be used: database or disk is full; free some space there and start again: without free space, it cannot even answer verifies\n`,
    );
  },
);

test.runIf(canMount)(
  'a log on a full disk delays no request, and continues once there is space (skipped where mounting is not allowed)',
  async () => {
    await using directory = temporaryDirectory();
    await using disk = smallDisk(256);
    const log = join(disk.path, 'log');
    const address = `127.0.0.1:${await freePort()}`;
    const intoFile = ['sh', '-c', `exec "$@" >>'${log}'`, 'sh', ...ownProgram] as const;
    await using daemon = spawnDaemon(directory.path, { listen: { tcp: address } }, {}, intoFile);
    await using client = httpClient({ tcp: `http://${address}` });
    const statusOf = async (path: string): Promise<number> => (await client.get(path)).status;
    await vi.waitFor(async () => expect(await statusOf('/readyz')).toBe(200), patience);

    disk.fill(0);
    for (let time = 0; time < 100; time += 1) expect(await statusOf('/statusz')).toBe(401);
    const before = readFileSync(log).length;
    disk.clear();
    expect(await statusOf('/statusz')).toBe(401);
    await vi.waitFor(() => expect(readFileSync(log).length).toBeGreaterThan(before + 1000), patience);
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toBe(0);
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
    const told = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(told.filter((message) => message === 'refused')).toHaveLength(101);
    expect(told.at(-1)).toBe('stopped');
  },
);
