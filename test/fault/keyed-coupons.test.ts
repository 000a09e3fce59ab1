import { expect, test } from 'vitest';
import { eventually, productKey } from '../support/harness/agent-harness.ts';
import {
  agentConfiguration,
  AgentProcess,
  AuthorityProcess,
  startAuthorityAndAgents,
} from '../support/harness/authority-and-agents.ts';
import { freePort } from '../support/network/free-port.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { SeededRandom } from '../property/simulation/seeded-random.ts';

const items = [{ product_key: productKey, amount: 1999 }];
const terms = { coupon_type: 'multi', percent_off: 20, usage_limit: 50 };

test('the limit of a coupon holds over three agents, and each order that was answered is counted once', async () => {
  const random = new SeededRandom(1);
  let gateway: HttpGateway | null = null;
  const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
  await using fleet = await startAuthorityAndAgents({ licenseKeys: ['A'], agents: 3, via, hasApiKey: true });
  const { authority, agents } = fleet;
  const headers = { 'service-api-key': authority.apiKey };
  const ids = new Map<string, number>();
  for (const code of ['SURE', 'LOST']) {
    ids.set(code, Number((await authority.send('/api/v2/coupons', { ...terms, code }))['id']));
  }
  for (const { agent } of agents) {
    await eventually(async () => {
      const { body } = await agent.client.get('/api/v2/coupons', { headers });
      return JSON.stringify(body).includes('LOST');
    });
  }
  const redeemed = async (code: string): Promise<number> => {
    const path = `/agent/v1/coupons/${ids.get(code)}`;
    const { body } = await authority.http.get(path, { headers: authority.admin });
    return (body as { data: { redemptions: number } }).data.redemptions;
  };
  const redeem = async ({ agent }: AgentProcess, code: string, order: string): Promise<number> =>
    (await agent.client.post('/agent/v1/redemptions', { headers, json: { order, code, items } })).status;
  /** Redeems for 90 orders at once, at the agents in turn. Returns how many were answered with each status. */
  const redeemAll = async (code: string): Promise<Record<string, number>> => {
    const asked = Array.from({ length: 30 }, (_, index) =>
      agents.map((agent, number) => redeem(agent, code, `${code}-${index}-${number}`)),
    );
    const statuses = await Promise.all(asked.flat());
    for (const { agent } of agents) await agent.atRest();
    return Object.fromEntries(
      [...new Set(statuses)].map((status) => [status, statuses.filter((each) => each === status).length]),
    );
  };
  expect(await redeemAll('SURE')).toEqual({ 201: 50, 409: 40 });
  expect(await redeemed('SURE')).toBe(50);
  // An agent that gets no answer takes a redemption without the authority, which may go beyond the limit.
  if (gateway !== null) {
    (gateway as HttpGateway).loses = (_, path) => path === '/agent/v1/redemptions' && random.chance(0.2);
  }
  const { 201: taken = 0, 409: refused = 0 } = await redeemAll('LOST');
  expect(taken + refused).toBe(90);
  expect(await redeemed('LOST')).toBe(taken);
  const [first] = agents;
  if (first === undefined) throw new Error('there is no agent');
  await authority.kill();
  const offline = (await redeem(first, 'SURE', 'offline')) === 201 ? 1 : 0;
  await authority.start();
  await first.agent.atRest();
  expect(await redeemed('SURE')).toBe(50 + offline);
  const outboxes = await Promise.all(agents.map((agent) => agent.outbox()));
  // On a busy machine, all redemptions of an agent may be refused, because the others were first.
  for (const { delivered: _, ...others } of outboxes) expect(others).toEqual({});
});

const one = { coupon_type: 'multi', percent_off: 20 };

function redeemFew({ agent }: AgentProcess, apiKey: string, order: string): Promise<{ status: number }> {
  const headers = { 'service-api-key': apiKey };
  return agent.client.post('/agent/v1/redemptions', { headers, json: { order, code: 'FEW', items } });
}

async function knowsCoupon({ agent }: AgentProcess, apiKey: string): Promise<void> {
  await eventually(async () => {
    const { body } = await agent.client.get('/api/v2/coupons', { headers: { 'service-api-key': apiKey } });
    return JSON.stringify(body).includes('FEW');
  });
}

test('six orders at once at two agents that never saw a license are accepted three times, as often as the coupon may be used', async () => {
  await using resources = new AsyncDisposableStack();
  const directory = (): string => resources.use(temporaryDirectory()).path;
  const authority = resources.use(new AuthorityProcess(directory(), await freePort(), {}));
  await authority.start();
  await authority.sell([]);
  const { apiKey } = authority;
  await authority.send('/api/v2/coupons', { ...one, usage_limit: 3, code: 'FEW' });
  const agents = [1, 2].map(() =>
    resources.use(new AgentProcess(directory(), agentConfiguration(authority.url, {}, { api_key: apiKey }))),
  );
  for (const agent of agents) await agent.start();
  const answers = await Promise.all(
    [1, 2, 3].flatMap((number) =>
      agents.map((agent, index) => redeemFew(agent, apiKey, `order ${index}-${number}`)),
    ),
  );
  const accepted = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status === 409);
  expect([accepted.length, refused.length]).toEqual([3, 3]);
});

test.each([false, true])(
  'an order whose first request was lost stays redeemed, although the coupon was used up (through a chain: %s)',
  async (isChain) => {
    await using resources = new AsyncDisposableStack();
    const directory = (): string => resources.use(temporaryDirectory()).path;
    const authority = resources.use(new AuthorityProcess(directory(), await freePort(), {}));
    await authority.start();
    await authority.sell([]);
    const { apiKey } = authority;
    await authority.send('/api/v2/coupons', { ...one, usage_limit: 1, code: 'FEW' });
    const start = async (above: string, listen: object): Promise<AgentProcess> => {
      const configuration = { ...agentConfiguration(above, {}, { api_key: apiKey }), ...listen };
      const agent = resources.use(new AgentProcess(directory(), configuration));
      await agent.start();
      await knowsCoupon(agent, apiKey);
      return agent;
    };
    const tcp = `127.0.0.1:${await freePort()}`;
    const middle = isChain ? await start(authority.url, { listen: { tcp } }) : null;
    const gateway = resources.use(await HttpGateway.start(middle === null ? authority.url : `http://${tcp}`));
    const lowest = await start(gateway.url, {});
    // Somebody else uses the coupon up.
    await authority.send('/agent/v1/redemptions', { order: 'theirs', code: 'FEW', items });
    let lost = 0;
    gateway.loses = (_, path) => path === '/agent/v1/redemptions' && lost++ === 0;
    expect(await redeemFew(lowest, apiKey, 'ours')).toMatchObject({ status: 201 });
    await lowest.agent.atRest();
    await middle?.agent.atRest();
    expect(await lowest.outbox()).toEqual({ delivered: 1 });
    const { body } = await authority.http.get('/agent/v1/redemptions/ours', { headers: authority.admin });
    expect(body).toMatchObject({ data: { over_limit: true } });
  },
);
