import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../../src/client/index.ts';
import { startDaemonProcess, type DaemonProcess } from '../../support/process/daemon-process.ts';
import { runProcess } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/*
 * A seller's store and a buyer's agent, as separate processes, by commands alone. The tests build on each other: they
 * run in this order.
 */

const storeHome = temporaryDirectory();
const agentHome = temporaryDirectory();
let store: DaemonProcess;
let agent: DaemonProcess;
let secret = '';
const licenseKey = 'KEY-OF-B';
let agentConfiguration = {};

afterAll(async () => {
  for (const daemon of [agent, store]) await daemon?.kill();
  for (const home of [agentHome, storeHome]) await home[Symbol.asyncDispose]();
});

/** Runs a command for the daemon of a directory. Its output is JSON. */
async function ask<Answer>(directory: string, ...argv: string[]): Promise<Answer> {
  const { code, out, err } = await runProcess([...argv, '--json', '--state-dir', join(directory, 'state')]);
  expect([code, err], argv.join(' ')).toEqual([0, '']);
  return JSON.parse(out) as Answer;
}

beforeAll(async () => {
  store = await startDaemonProcess(storeHome.path, { listen: { tcp: '127.0.0.1:0' } });
});

test('the store listens on a pipe with a name of its own and on TCP', () => {
  expect(store.socket).toMatch(/^\\\\\.\\pipe\\latchkey-[0-9a-f]{16,}$/);
  expect(store.tcp).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
});

test('commands make a product and a license key', async () => {
  const product = await ask<{ secret: string }>(storeHome.path, 'product', 'add', 'Editor', '--key', 'ED');
  ({ secret } = product);
  const argv = ['license', 'issue', '--product', 'ED', '--email', 'b@example.com', '--key', licenseKey];
  await ask(storeHome.path, ...argv);
  expect(await usesInStore()).toBe(0);
});

test('an agent before the store counts uses that its client makes over the pipe and over TCP', async () => {
  const api_key = readFileSync(join(storeHome.path, 'state/api.key'), 'utf8').trim();
  agentConfiguration = {
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url: store.tcp, api_key, probe: '200ms' },
    products: [{ key: 'ED', secret }],
  };
  agent = await startDaemonProcess(agentHome.path, agentConfiguration);
  await useOverBoth();
  await expect.poll(usesInStore).toBe(2);
});

test('an agent that was killed starts again and goes on', async () => {
  await agent.kill();
  agent = await startDaemonProcess(agentHome.path, agentConfiguration);
  await useOverBoth();
  await expect.poll(usesInStore).toBe(4);
});

test('an agent ends in good order by the command stop, and starts again', async () => {
  await ask(agentHome.path, 'stop');
  expect(await agent.ended).toBe(0);
  agent = await startDaemonProcess(agentHome.path, agentConfiguration);
  await useOverBoth();
  await expect.poll(usesInStore).toBe(6);
});

test('the store is backed up while it runs, and the copy has the license', async () => {
  await using elsewhere = temporaryDirectory();
  const copy = join(elsewhere.path, 'copy.db');
  await ask(storeHome.path, 'backup', copy);
  await ask(elsewhere.path, 'restore', copy);
  await using restored = await startDaemonProcess(elsewhere.path, { listen: { tcp: '127.0.0.1:0' } });
  expect(restored.socket).not.toBe(store.socket);
  expect(await ask(elsewhere.path, 'license', 'show', licenseKey)).toMatchObject({ license: { uses: 6 } });
});

async function useOverBoth(): Promise<void> {
  for (const url of [`unix:${agent.socket}`, agent.tcp]) {
    const client = connect({ url, productSecret: secret });
    expect(await client.verify(licenseKey)).toMatchObject({ verdict: 'valid' });
    await client.use(licenseKey);
    client.close();
  }
}

async function usesInStore(): Promise<number> {
  const argv = ['license', 'show', licenseKey];
  return (await ask<{ license: { uses: number } }>(storeHome.path, ...argv)).license.uses;
}
