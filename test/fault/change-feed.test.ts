import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { eventually, productKey, secret } from '../support/harness/agent-harness.ts';
import {
  agentConfiguration,
  AgentProcess,
  startAuthorityAndAgents,
  untilEqual,
  untilLatchkeyKnown,
} from '../support/harness/authority-and-agents.ts';
import { copyState, exactly, settled } from '../support/harness/sync-callers.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** How long a measured time was, for people who read the results. */
function report(what: string, since: number): void {
  process.stderr.write(`${what}: ${Math.round(performance.now() - since)} ms\n`);
}

test('2,000 uses recorded offline arrive once each, and a refund is answered by the agent', async () => {
  const licenseKeys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
  await using fleet = await startAuthorityAndAgents({ licenseKeys });
  const { authority, agents } = fleet;
  const [only] = agents;
  if (only === undefined) throw new Error('there is no agent');
  await authority.kill();
  await Promise.all(licenseKeys.map((key) => only.use(Array.from({ length: 100 }, () => key))));
  await authority.start();
  const back = performance.now();
  await only.agent.atRest();
  report('2,000 operations were delivered after', back);
  expect(await authority.usesOf(licenseKeys)).toEqual(licenseKeys.map(() => 100));
  expect(await only.outbox()).toEqual({ delivered: 2_000 });
  await untilEqual(fleet, licenseKeys);
  const refunded = performance.now();
  await authority.refund('KEY-3');
  await eventually(async () => {
    const { body } = await only.agent.verify('KEY-3');
    return (body as { data: { enabled: boolean } }).data.enabled === false;
  });
  report('a refund was answered after', refunded);
});

test('an agent of many products delivers a change although it waits for changes of each product', async () => {
  await using fleet = await startAuthorityAndAgents({ licenseKeys: ['KEY'] });
  const { authority, agents } = fleet;
  const [only] = agents;
  if (only === undefined) throw new Error('there is no agent');
  await only.kill();
  const others = Array.from({ length: 6 }, (_, index) => ({
    key: `OTHER-${index}`,
    secret: `secret-of-other-${index}`,
  }));
  for (const { key, secret: other } of others)
    await authority.send('/admin/v1/products', { name: key, product_key: key, secret: other });
  const configuration = agentConfiguration(authority.url, { concurrency: 1 });
  const products = [{ key: productKey, secret }, ...others];
  await using agent = new AgentProcess(only.directory, { ...configuration, products });
  await untilLatchkeyKnown(await agent.start());
  await eventually(async () => {
    const { body } = await authority.http.get('/admin/v1/agents', { headers: authority.admin });
    const rows = (body as { data: { agents: { waiting: boolean }[] } }).data.agents;
    return rows.filter(({ waiting }) => waiting).length >= 4;
  });
  const used = performance.now();
  await agent.use(['KEY']);
  await eventually(async () => (await authority.license('KEY')).uses === 1);
  expect(performance.now() - used).toBeLessThan(5_000);
});

/** The path on Debian and its descendants (apt-get install libfaketime). */
const library = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** The environment of a process whose wall clock is ahead. */
function ahead(days: number): Record<string, string> {
  return { LD_PRELOAD: library ?? '', FAKETIME: `+${days}d`, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}

test.skipIf(library === undefined)(
  'an agent that was off for a month counts nothing twice, nor does its copy (needs libfaketime)',
  async () => {
    let gateway: HttpGateway | null = null;
    const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
    const lose = (isLost: boolean): void => {
      if (gateway !== null) gateway.loses = (_, path) => isLost && path === '/api/v2/license/usage';
    };
    const licenseKeys = ['A', 'B'];
    await using elsewhere = temporaryDirectory();
    await using fleet = await startAuthorityAndAgents({ licenseKeys, via });
    const { authority, agents } = fleet;
    const [original] = agents;
    if (original === undefined) throw new Error('there is no agent');
    await original.use(['A', 'A', 'A']);
    await original.agent.atRest();
    lose(true);
    await original.use(['A']);
    await eventually(async () => (await authority.license('A')).uses === 4);
    await original.use(['B', 'B']);
    await eventually(async () => (await authority.license('B')).uses === 1);
    await original.kill();
    copyState(original.directory, elsewhere.path);
    lose(false);
    // A clock that jumps ahead by over 30 days removes nothing.
    for (const days of [16, 32]) {
      await authority.stop();
      await authority.start(ahead(days));
    }
    await original.start(ahead(32));
    // Nothing shows any more whether the uses whose answers were lost have counted: a person decides.
    await eventually(async () => JSON.stringify(await authority.usesOf(licenseKeys)) === '[4,2]');
    await original.agent.atRest();
    expect(await original.outbox()).toMatchObject({ held: 2, uncertain: 2 });
    await using copy = original.in(elsewhere.path);
    await copy.start(ahead(32));
    await copy.agent.atRest();
    expect(await authority.usesOf(licenseKeys)).toEqual([4, 2]);
    await copy.use(['A']);
    await eventually(async () => (await authority.license('A')).uses === 5);
    await eventually(async () => (await original.usesOf(['A']))[0] === 5);
  },
);

test('changes are delivered exactly although a gateway hides the change feed', async () => {
  let gateway: HttpGateway | null = null;
  const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
  const licenseKeys = ['A', 'B'];
  await using fleet = await startAuthorityAndAgents({ licenseKeys, via });
  const [only] = fleet.agents;
  if (gateway === null || only === undefined) throw new Error('nothing was started');
  const { requests }: HttpGateway = gateway;
  await only.use(['A']);
  await only.agent.atRest();
  const hide = (answer: { status: number; body: string } | null): void => {
    if (gateway !== null) gateway.instead = (_, path) => (path.startsWith('/sync/v1') ? answer : null);
  };
  for (const answer of [
    { status: 404, body: '<h1>Not Found</h1>' },
    { status: 404, body: '{"error":"no route"}' },
    { status: 200, body: '<h1>Welcome</h1>' },
    { status: 405, body: '' },
  ]) {
    hide(answer);
    const before = requests.length;
    await only.use(['A', 'B']);
    await eventually(() => requests.slice(before).includes('POST /sync/v1/changes'));
  }
  await only.kill();
  await only.start();
  await only.use(['A', 'B']);
  hide(null);
  expect(await settled(fleet, licenseKeys, [6, 5])).toEqual(exactly(fleet, [6, 5]));
});
