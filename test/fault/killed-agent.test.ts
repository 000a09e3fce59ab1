import { expect, test } from 'vitest';
import { startHarness, type Agent } from '../support/harness/agent-harness.ts';
import { everyNth, loseResponse, movesCounter, type FaultPlan } from '../support/harness/plain-upstream.ts';
import { httpClient } from '../support/network/raw-http.ts';

const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
const usesOfEach = 25;

/** Records uses over the socket and TCP in turn; returns how many uses of each key were answered 200. */
async function useAll(agent: Agent): Promise<Map<string, number>> {
  await using tcp = httpClient(agent.process);
  const answered = new Map<string, number>();
  const uses = keys.flatMap((key) => Array.from({ length: usesOfEach }, () => key));
  await Promise.all(
    uses.map(async (key, index) => {
      const { status } = await agent.change('usage', key, {}, index % 2 === 0 ? tcp : agent.client);
      if (status === 200) answered.set(key, (answered.get(key) ?? 0) + 1);
    }),
  );
  return answered;
}

const plans: [string, FaultPlan][] = [
  ['nothing else fails', () => undefined],
  ['every tenth response is lost after its use was counted', everyNth(10, loseResponse, movesCounter)],
];

for (const [circumstance, fault] of plans) {
  test.concurrent(
    `500 uses recorded offline survive kill -9 and arrive once each, when ${circumstance}`,
    async () => {
      await using harness = await startHarness({ licenses: keys });
      const { upstream } = harness;
      const agent = await harness.startAgent();
      await agent.learn(keys);
      await upstream.stop();
      const answered = await useAll(agent);
      expect([...answered.values()]).toEqual(keys.map(() => usesOfEach));
      await agent.kill();
      upstream.fault = fault;
      const successor = await harness.startAgent();
      await upstream.start();
      await successor.atRest();
      expect((await successor.status()).outbox).toMatchObject({ inferred: 0, dead: 0 });
      const counts = keys.map((key) => [upstream.countsOf(key).net, upstream.license(key).uses]);
      expect(counts).toEqual(keys.map(() => [usesOfEach, usesOfEach]));
    },
  );
}

test('500 uses that kill -9 interrupts arrive once each, when callers repeat those without a response', async () => {
  await using harness = await startHarness({ licenses: keys });
  const { upstream } = harness;
  const agent = await harness.startAgent();
  await agent.learn(keys);
  const all = Array.from({ length: keys.length * usesOfEach }, (_, use) => use);
  let responses = 0;
  const killed = Promise.withResolvers<void>();
  const interrupted = await useOnce(agent, all, () => {
    responses += 1;
    if (responses === 250) agent.process.kill().then(killed.resolve, killed.reject);
  });
  await killed.promise;
  expect(interrupted.length).toBeGreaterThan(0);
  const successor = await harness.startAgent();
  expect(await useOnce(successor, interrupted)).toEqual([]);
  await successor.atRest();
  const counts = keys.map((key) => [upstream.countsOf(key).net, upstream.license(key).uses]);
  expect(counts).toEqual(keys.map(() => [usesOfEach, usesOfEach]));
});

/** Records numbered uses, each with an idempotency key of its own. Returns the uses that got no response. */
async function useOnce(
  agent: Agent,
  uses: readonly number[],
  onResponse: () => void = () => undefined,
): Promise<number[]> {
  await using tcp = httpClient(agent.process);
  const record = async (use: number): Promise<boolean> => {
    const key = keys[use % keys.length] ?? '';
    const headers = { 'idempotency-key': `use-${use}` };
    const sent = agent.change('usage', key, headers, use % 2 === 0 ? tcp : agent.client);
    const response = await sent.catch(() => null);
    if (response === null) return false;
    expect(response.status).toBe(200);
    onResponse();
    return true;
  };
  const isAnswered = await Promise.all(uses.map(record));
  return uses.filter((_, index) => isAnswered[index] === false);
}
