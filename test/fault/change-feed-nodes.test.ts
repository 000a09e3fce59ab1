import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { productKey, secret } from '../support/harness/agent-harness.ts';
import {
  AgentProcess,
  agentConfiguration,
  untilLatchkeyKnown,
} from '../support/harness/authority-and-agents.ts';
import { Callers } from '../support/harness/sync-callers.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { hasPostgres } from '../features/postgres/support/postgres.ts';
import { startNodes } from '../features/postgres/support/node-processes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patience } from '../support/patience.ts';
import { SeededRandom } from '../property/simulation/seeded-random.ts';

test.skipIf(!hasPostgres)(
  'two agents deliver through a balancer to two nodes that are killed in turn, and each use counts once',
  async () => {
    const licenseKeys = ['A', 'B'];
    const random = new SeededRandom(1);
    await using nodes = await startNodes(2);
    const [first, second] = nodes.all;
    if (first === undefined || second === undefined) throw new Error('there is no node');
    const headers = first.admin;
    const product = { name: 'Product', product_key: productKey, secret };
    await first.http.post('/admin/v1/products', { headers, json: product });
    for (const license_key of licenseKeys) {
      const json = { product_key: productKey, buyer_email: 'buyer@example.com', license_key };
      expect((await first.http.post('/admin/v1/purchases', { headers, json })).status).toBe(201);
    }
    // Each request goes to any node, also to one that does not run.
    await using gateway = await HttpGateway.start(() => `http://${random.pick([first, second]).address}`);
    await using homes = new AsyncDisposableStack();
    const agents: AgentProcess[] = [];
    for (let number = 0; number < 2; number += 1) {
      const home = homes.use(temporaryDirectory()).path;
      const agent = homes.use(new AgentProcess(home, agentConfiguration(gateway.url)));
      await agent.start();
      await agent.agent.learn(licenseKeys);
      await untilLatchkeyKnown(agent.agent);
      agents.push(agent);
    }
    const callers = new Callers(licenseKeys);
    for (const agent of agents) callers.start(agent, 2);
    for (const killed of [first, second, first, second]) {
      await pause(random.between(50, 300));
      await killed.kill();
      await pause(random.between(50, 300));
      await killed.start();
    }
    await callers.stop();
    const answered = [...callers.answered.values()];
    for (const { agent } of agents) await agent.atRest();
    const rows = await nodes.database.query(`SELECT uses FROM nodes.license ORDER BY license_key`);
    expect(rows.map(({ uses }) => Number(uses))).toEqual(answered);
    for (const agent of agents) {
      await expect.poll(() => agent.usesOf(licenseKeys), patience).toEqual(answered);
      expect(Object.keys(await agent.outbox())).toEqual(['delivered']);
    }
  },
);
