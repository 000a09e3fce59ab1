import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { embeddedConfiguration } from '../../../../src/config/load.ts';
import { startDaemon } from '../../../../src/daemon/start.ts';
import { configObject, doctorObject, overviewObject } from '../../../../src/features/console/wire/console.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** An agent in front of an address where nothing listens, or of another upstream. */
async function startAgent(upstream: object = { api_key: 'an-api-key-of-the-store' }) {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory()).path;
  const stateDir = join(directory, 'state');
  const configuration = embeddedConfiguration({
    state_dir: stateDir,
    listen: { tcp: '127.0.0.1:0', socket: false },
    upstream: { base_url: `http://127.0.0.1:${await freePort()}`, ...upstream },
    products: [{ key: 'press', secret: 'the-secret-of-press' }],
  });
  const daemon = opened.adopt(await startDaemon(configuration, { log: silent }), (each) => each.stop());
  const token = readFileSync(join(stateDir, 'admin.token'), 'utf8').trim();
  const get = async <Value>(path: string, schema: z.ZodType<Value>, headers: object = {}) => {
    const url = `${daemon.addresses.tcp}/admin/v1/${path}`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}`, ...headers } });
    const text = await answer.text();
    const data = text === '' ? null : schema.parse((JSON.parse(text) as { data: unknown }).data);
    return { status: answer.status, etag: answer.headers.get('etag'), data, text };
  };
  return { daemon, get, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test('A running agent answers its overview with the same ETag, until something happens.', async () => {
  await using agent = await startAgent();
  // The agent finds out by itself that nothing listens there.
  const state = async () => (await agent.get('overview', overviewObject)).data?.upstream?.state;
  await expect.poll(state, { timeout: 10_000 }).toBe('down');
  const first = await agent.get('overview', overviewObject);
  expect(first.data).toMatchObject({ role: 'agent', storage: 'ok', outbox: { pending: 0, oldest_at: null } });
  const again = await agent.get('overview', overviewObject);
  expect(again.data).toEqual(first.data);
  const same = await agent.get('overview', overviewObject, { 'if-none-match': first.etag });
  expect([same.status, same.text, same.etag]).toEqual([304, '', first.etag]);
});

test('A running agent examines itself, and finds that its upstream is away.', async () => {
  await using agent = await startAgent();
  const one = await agent.get('doctor', doctorObject);
  expect(one.data?.ok).toBe(false);
  const found = one.data?.findings ?? [];
  expect(found).toContainEqual({ level: 'ok', what: 'the daemon is ready', advice: null });
  expect(found.filter(({ level }) => level === 'fail')).toEqual([
    {
      level: 'fail',
      what: expect.stringContaining('connection refused') as string,
      advice: expect.any(String) as string,
    },
  ]);
});

test('A running agent shows its configuration, and no secret of it.', async () => {
  await using agent = await startAgent();
  const { data, text } = await agent.get('config', configObject);
  const values = Object.fromEntries((data?.settings ?? []).map(({ key, value }) => [key, value]));
  expect(values).toMatchObject({
    'products[0].key': 'press',
    'products[0].secret': '***',
    'upstream.api_key': '***',
  });
  expect(text).not.toMatch(/the-secret-of-press|an-api-key/);
});

test('Requests for an examination that arrive together cause one examination of the upstream.', async () => {
  let requests = 0;
  const upstream = createServer((_, response) => {
    requests += 1;
    setImmediate(() => response.writeHead(404).end());
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const { port } = upstream.address() as AddressInfo;
  try {
    await using agent = await startAgent({ base_url: `http://127.0.0.1:${port}` });
    // The agent itself asks once after its start.
    await expect.poll(() => requests).toBeGreaterThan(0);
    const before = requests;
    await agent.get('doctor', doctorObject);
    const ofOne = requests - before;
    expect(ofOne).toBeGreaterThan(0);
    const both = await Promise.all([agent.get('doctor', doctorObject), agent.get('doctor', doctorObject)]);
    expect(both[0].data).toEqual(both[1].data);
    expect(requests - before).toBe(2 * ofOne);
  } finally {
    upstream.close();
  }
});
