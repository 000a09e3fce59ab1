import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  startAuthorityAndAgents,
  type AgentProcess,
  type AuthorityProcess,
} from '../support/harness/authority-and-agents.ts';
import { Callers, exactly, settled } from '../support/harness/sync-callers.ts';
import { SeededRandom } from '../property/simulation/seeded-random.ts';

/** The project "thorough, real processes" has 50. To try other seeds: LATCHKEY_SEEDS=7,8 npx vitest run … */
const kills = Number(process.env['LATCHKEY_KILLS'] ?? 12);
/** A kill and a start take seconds on a busy machine. */
const timeout = 300_000 + kills * 15_000;
const seeds = (process.env['LATCHKEY_SEEDS'] ?? '1').split(',').map(Number);

for (const seed of seeds) {
  test(
    `seed ${seed}: counts are exact although the authority and its agents are killed during deliveries`,
    async () => {
      const licenseKeys = ['A', 'B', 'C'];
      await using fleet = await startAuthorityAndAgents({ licenseKeys, agents: 3 });
      const { authority, agents } = fleet;
      const random = new SeededRandom(seed);
      const callers = new Callers(licenseKeys);
      for (const agent of agents) callers.start(agent, 3);
      const killable: readonly (AuthorityProcess | AgentProcess)[] = [authority, ...agents];
      for (let kill = 0; kill < kills; kill += 1) {
        const killed = killable[random.chance(0.5) ? 0 : random.between(1, agents.length)] ?? authority;
        await pause(random.between(5, 150));
        await killed.kill();
        await killed.start();
      }
      await callers.stop();
      expect(await settled(fleet, licenseKeys)).toEqual(exactly(callers.answered.values()));
    },
    timeout,
  );
}
