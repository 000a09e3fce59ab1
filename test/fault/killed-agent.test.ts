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
