import { expect, test } from 'vitest';
import { eventually, type Agent } from '../support/harness/agent-harness.ts';
import {
  agentConfiguration,
  AgentProcess,
  AuthorityProcess,
  untilEqual,
  untilLatchkeyKnown,
} from '../support/harness/authority-and-agents.ts';
import { freePort } from '../support/network/free-port.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** An authority, an agent below it, and an agent below that, each in a process. */
class Chain implements AsyncDisposable {
  readonly authority: AuthorityProcess;
  readonly middle: AgentProcess;
  readonly lowest: AgentProcess;
  readonly #resources: AsyncDisposableStack;

  private constructor(
    parts: Pick<Chain, 'authority' | 'middle' | 'lowest'>,
    resources: AsyncDisposableStack,
  ) {
    this.authority = parts.authority;
    this.middle = parts.middle;
    this.lowest = parts.lowest;
    this.#resources = resources;
  }

  static async start(licenseKeys: readonly string[]): Promise<Chain> {
    await using resources = new AsyncDisposableStack();
    const [top, between, bottom] = [1, 2, 3].map(() => resources.use(temporaryDirectory()).path) as [
      string,
      string,
      string,
    ];
    const authority = resources.use(new AuthorityProcess(top, await freePort(), {}));
    await authority.start();
    await authority.sell(licenseKeys);
    const tcp = `127.0.0.1:${await freePort()}`;
    const above = { ...agentConfiguration(authority.url), listen: { tcp } };
    const middle = resources.use(new AgentProcess(between, above));
    const lowest = resources.use(new AgentProcess(bottom, agentConfiguration(`http://${tcp}`)));
    for (const agent of [middle, lowest]) {
      await agent.start();
      await agent.agent.learn(licenseKeys);
      await untilLatchkeyKnown(agent.agent);
    }
    return new Chain({ authority, middle, lowest }, resources.move());
  }

  get agents(): readonly AgentProcess[] {
    return [this.middle, this.lowest];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

async function isEnabled(agent: Agent, licenseKey: string): Promise<boolean> {
  const { body } = await agent.verify(licenseKey);
  return (body as { data: { enabled: boolean } }).data.enabled;
}

test('a refund is answered by the lowest of two agents, and their uses count once while both are killed', async () => {
  const licenseKeys = ['A', 'B', 'C'];
  await using chain = await Chain.start(licenseKeys);
  const { authority, middle, lowest } = chain;
  const begun = performance.now();
  await authority.refund('C');
  await eventually(async () => !(await isEnabled(lowest.agent, 'C')));
  process.stderr.write(`a refund through two agents took ${Math.round(performance.now() - begun)} ms\n`);

  const uses = Array.from({ length: 20 }, () => 'A');
  for (const killed of [middle, lowest, middle]) {
    await Promise.all(chain.agents.map((agent) => agent.use([...uses, 'B'])));
    await killed.kill();
    await killed.start();
  }
  await untilEqual({ authority, agents: chain.agents }, licenseKeys);
  expect(await authority.usesOf(licenseKeys)).toEqual([120, 6, 0]);

  await authority.kill();
  await lowest.use(uses);
  await eventually(async () => Object.keys(await lowest.outbox()).join() === 'delivered');
  expect(await middle.usesOf(['A'])).toEqual([140]);
  await authority.start();
  await untilEqual({ authority, agents: chain.agents }, licenseKeys);
  expect(await authority.usesOf(licenseKeys)).toEqual([140, 6, 0]);
});
