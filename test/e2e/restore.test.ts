import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  Agent,
  dataOf,
  eventually,
  startHarness,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { operate, recordIn } from '../support/app/people.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { ownerOnly } from '../support/platform.ts';

const keys = ['KEY-0', 'KEY-1', 'KEY-2', 'KEY-3'];

/** An agent that has learned every key, and then lost its upstream. */
async function offlineAgent(sync: object = {}): Promise<{ harness: AgentHarness; agent: Agent }> {
  const harness = await startHarness({ licenses: keys, configuration: { sync } });
  const agent = await harness.startAgent();
  await agent.learn(keys);
  await harness.proxy.become({ kind: 'refuse' });
  return { harness, agent };
}

/**
 * Records uses of the keys in turn, some at the same time; returns how many uses of each key were
 * answered 200.
 */
async function use(agent: Agent, count: number, onResponse: (answered: number) => void = () => undefined) {
  const answered = new Map(keys.map((key) => [key, 0]));
  let next = 0;
  let done = 0;
  const callOften = async (): Promise<void> => {
    while (next < count) {
      const key = keys[next % keys.length] ?? '';
      next += 1;
      const { status } = await agent.change('usage', key);
      if (status === 200) answered.set(key, (answered.get(key) ?? 0) + 1);
      done += 1;
      onResponse(done);
    }
  };
  await Promise.all(Array.from({ length: 8 }, callOften));
  return answered;
}

/** Another agent of the same upstream, with its state in another directory. */
async function agentIn(directory: string, harness: AgentHarness): Promise<Agent> {
  return new Agent(await startDaemonProcess(directory, harness.configuration), directory);
}

/** The upstream counted exactly the uses that callers were promised, and both sides agree. */
async function expectCounted(harness: AgentHarness, agent: Agent, answered: ReadonlyMap<string, number>) {
  for (const [key, count] of answered) {
    expect([key, harness.upstream.countsOf(key).net]).toEqual([key, count]);
    const seen = await agent.verify(key);
    expect([key, dataOf(seen)['uses'], seen.headers['latchkey-pending']]).toEqual([key, count, '0']);
  }
}

test('a backup under write load, restored elsewhere, is read back and counts nothing twice', async () => {
  await using elsewhere = temporaryDirectory();
  const { harness, agent } = await offlineAgent();
  await using _ = harness;
  const file = join(elsewhere.path, 'copy.db');
  const backups: ReturnType<typeof operate>[] = [];
  const answered = await use(agent, 2000, (done) => {
    if (done === 200) backups.push(operate(harness.directory, 'backup', file));
  });
  const [copied] = await Promise.all(backups);
  expect(copied).toMatchObject({ code: 0, err: '' });
  expect((statSync(file).mode & 0o777).toString(8)).toBe(ownerOnly);
  expect(readdirSync(join(harness.directory, 'state')).filter((name) => name.includes('backup'))).toEqual([]);
  expect([...answered.values()]).toEqual(keys.map(() => 500));

  await harness.proxy.become({ kind: 'pass' });
  await agent.atRest();
  await agent.kill();
  const delivered = harness.upstream.ledger.length;

  const restored = await operate(elsewhere.path, 'restore', file, '--json');
  const { unfinished } = JSON.parse(restored.out) as { unfinished: number };
  expect(restored.code).toBe(0);
  expect(unfinished).toBeGreaterThanOrEqual(200);
  await using second = await agentIn(elsewhere.path, harness);
  await second.atRest();
  await expectCounted(harness, second, answered);
  const since = harness.upstream.ledger.slice(delivered);
  expect(since.filter(({ kind }) => kind !== 'verify')).toEqual([]);
});

test('a restored agent sends only the changes that the previous agent had not sent', async () => {
  await using elsewhere = temporaryDirectory();
  // Slow enough that the test can stop it in the middle.
  const { harness, agent } = await offlineAgent({ rate: 20 });
  await using _ = harness;
  const answered = await use(agent, 80);
  const file = join(elsewhere.path, 'copy.db');
  expect((await operate(harness.directory, 'backup', file)).code).toBe(0);
  await harness.proxy.become({ kind: 'pass' });
  await harness.upstream.until(() => keys.some((key) => harness.upstream.countsOf(key).net >= 5));
  await agent.kill();

  const restored = await operate(elsewhere.path, 'restore', file);
  expect([restored.code, restored.out]).toEqual([
    0,
    expect.stringContaining('The backup has 80 unfinished changes: each is read back from the upstream'),
  ]);
  await using second = await agentIn(elsewhere.path, harness);
  await second.atRest();
  await expectCounted(harness, second, answered);
  // Each use was counted once, but after a restore no count is certain.
  const states = await second.operations('inferred');
  expect(states.length).toBe(80);
});

test('a copied state directory that is started elsewhere becomes another agent, and counts nothing twice', async () => {
  await using elsewhere = temporaryDirectory();
  const { harness, agent } = await offlineAgent();
  await using _ = harness;
  const answered = await use(agent, 40);
  const { instance } = await agent.status();
  await agent.kill();
  cpSync(join(harness.directory, 'state'), join(elsewhere.path, 'state'), {
    recursive: true,
    filter: (path) => !path.endsWith('.sock'),
  });
  await harness.proxy.become({ kind: 'pass' });
  const first = await harness.startAgent();
  await first.atRest();
  expect((await first.status()).instance).toBe(instance);
  const delivered = harness.upstream.ledger.length;

  await using second = await agentIn(elsewhere.path, harness);
  await second.atRest();
  expect((await second.status()).instance).not.toBe(instance);
  await expectCounted(harness, second, answered);
  const since = harness.upstream.ledger.slice(delivered);
  expect(since.filter(({ kind }) => kind !== 'verify')).toEqual([]);
});

test('restore refuses a directory that a daemon uses and a file that is not a backup, and changes nothing', async () => {
  await using harness = await startHarness({ licenses: keys });
  const agent = await harness.startAgent();
  await agent.learn(keys);
  const file = join(harness.directory, 'copy.db');
  expect((await operate(harness.directory, 'backup', file)).code).toBe(0);
  const { instance } = await agent.status();
  const held = await operate(harness.directory, 'restore', file);
  expect(held).toMatchObject({ code: 1, out: '' });
  expect(held.err).toContain('Another process is using the state directory');
  expect(held.err).toContain('Nothing was changed.');
  expect((await agent.status()).instance).toBe(instance);

  expect((await operate(harness.directory, 'stop')).code).toBe(0);
  expect(await agent.process.ended).toBe(0);
  const before = readFileSync(join(harness.directory, 'state', 'latchkey.db'));
  const foreign = await operate(harness.directory, 'restore', join(harness.directory, 'config.yaml'));
  expect([foreign.code, foreign.err]).toEqual([1, expect.stringContaining('not an SQLite database')]);
  const none = await operate(harness.directory, 'restore', join(harness.directory, 'nothing.db'));
  expect([none.code, none.err]).toEqual([1, expect.stringContaining('there is no such file')]);
  expect(readFileSync(join(harness.directory, 'state', 'latchkey.db')).equals(before)).toBe(true);

  const restored = await operate(harness.directory, 'restore', file);
  expect(restored.code).toBe(0);
  expect(restored.out).toContain('latchkey.db.replaced');
  const again = await harness.startAgent();
  const { instance: made } = await again.status();
  expect(made).not.toBe(instance);
  expect(restored.out).toContain(made);
  expect(recordIn(harness.directory)).toEqual([`store.restore ${made}`]);
});

test('a start without admin.token writes a new token, and the old token is no longer valid', async () => {
  await using harness = await startHarness();
  const before = await harness.startAgent();
  await before.status();
  const path = join(harness.directory, 'state', 'admin.token');
  const old = readFileSync(path, 'utf8').trim();
  await before.kill();
  rmSync(path);
  const after = await harness.startAgent();
  expect(readFileSync(path, 'utf8').trim()).not.toBe(old);
  expect((statSync(path).mode & 0o777).toString(8)).toBe(ownerOnly);
  await after.status();
  expect((await operate(harness.directory, 'status')).code).toBe(0);
  await using client = httpClient(after.process);
  const refused = await client.get('/statusz', { headers: { authorization: `Bearer ${old}` } });
  expect(refused.status).toBe(401);
  await eventually(async () => (await after.status()).upstream.state === 'up');
});
