import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  startAuthorityAndAgents,
  type AgentProcess,
  type AuthorityProcess,
} from '../support/harness/authority-and-agents.ts';
import { Callers, exactly, insist, settled } from '../support/harness/sync-callers.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { SeededRandom } from '../property/simulation/seeded-random.ts';

/** The project "thorough, real processes" has 50. To try other seeds: LATCHKEY_SEEDS=7,8 npx vitest run … */
const kills = Number(process.env['LATCHKEY_KILLS'] ?? 12);
/** A kill and a start take seconds on a busy machine. */
const timeout = 300_000 + kills * 15_000;
const seeds = (process.env['LATCHKEY_SEEDS'] ?? '1').split(',').map(Number);

/** Switches the license of an agent alone on and off, until the callers stop. Returns whether it was enabled last. */
async function switchOnAndOff(
  agent: AgentProcess,
  licenseKey: string,
  random: SeededRandom,
  over: AbortSignal,
) {
  let isEnabled = true;
  for (let call = 0; !over.aborted; call += 1) {
    isEnabled = random.chance(0.5);
    await insist(agent, licenseKey, {
      kind: isEnabled ? 'enable' : 'disable',
      name: `${licenseKey}-${call}`,
    });
    await pause(40);
  }
  return isEnabled;
}

for (const seed of seeds) {
  test(
    `seed ${seed}: counts are exact although processes are killed during deliveries and answers are lost`,
    async () => {
      const licenseKeys = ['A', 'B', 'C'];
      const own = ['OWN-0', 'OWN-1', 'OWN-2'];
      const lost = new SeededRandom(seed + 1_000);
      let gateway: HttpGateway | null = null;
      const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
      await using fleet = await startAuthorityAndAgents({
        licenseKeys: [...licenseKeys, ...own],
        agents: 3,
        via,
      });
      const { authority, agents } = fleet;
      const random = new SeededRandom(seed);
      const lose = (chance: number): void => {
        if (gateway !== null) gateway.loses = () => lost.chance(chance);
      };
      const callers = new Callers(licenseKeys);
      for (const agent of agents) callers.start(agent, 2);
      const switches = agents.map((agent, index) =>
        switchOnAndOff(agent, own[index] ?? '', new SeededRandom(seed + index), callers.over),
      );
      lose(0.1);
      const killable: readonly (AuthorityProcess | AgentProcess)[] = [authority, ...agents];
      for (let kill = 0; kill < kills; kill += 1) {
        const killed = killable[random.chance(0.5) ? 0 : random.between(1, agents.length)] ?? authority;
        await pause(random.between(5, 150));
        await killed.kill();
        await killed.start();
      }
      await callers.stop();
      const states = await Promise.all(switches);
      lose(0);
      expect(await settled(fleet, licenseKeys, [...callers.answered.values()])).toEqual(
        exactly(fleet, [...callers.answered.values()]),
      );
      const enabled = await Promise.all(own.map(async (key) => (await authority.license(key)).enabled));
      expect(enabled).toEqual(states);
    },
    timeout,
  );
}
