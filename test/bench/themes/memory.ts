import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.ts';
import { residentMemory } from '../process.ts';
import { programs } from '../program.ts';
import { verify } from '../sample.ts';
import { startBare, startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, type Goal, type Row, type Theme } from '../theme.ts';

/** The number of verifies per key. */
const timesEach = 5;
const goals = { idle: { atMost: 95 }, used: { atMost: 150 } } as const;

export const memoryTheme: Theme = {
  name: 'memory',
  about: 'resident memory of an agent as a service, idle and after 1,000,000 verifies over 200,000 keys',
  async *measure(bench) {
    const licenses = bench.count(200_000);
    const state = await copyOfStore(bench, { role: 'agent', licenses });
    const upstream = (await startBare(bench, { licenses })).tcp;
    for (const form of bench.shippedForms()) {
      await using agent = await startLatchkey(bench, {
        state,
        upstream,
        program: programs[form],
        asService: true,
      });
      yield await rowOf(bench, agent, `resident memory of an agent as a service, ${form}, idle`, goals.idle);
      // Load adds the same memory to every form, and takes long.
      if (form !== bench.form) continue;
      const keys = { first: 0, count: licenses };
      for (let time = 0; time < timesEach; time += 1) {
        const job = { target: agent.socket, request: verify, keys, connections: 64 };
        await bench.load(agent, { ...job, ending: 'each key once' });
      }
      const verifies = (licenses * timesEach).toLocaleString('en');
      const what = `the same after ${verifies} verifies over ${licenses.toLocaleString('en')} keys`;
      yield await rowOf(bench, agent, what, goals.used);
    }
  },
};

async function rowOf(bench: Bench, { pid }: Latchkey, what: string, goal: Goal): Promise<Row> {
  await sleep(bench.effort.seconds * 1000);
  const resident = residentMemory(pid);
  if (resident === null) return notMeasured(what, 'MiB', goal, 'there is no /proc');
  const note = `of it ${Math.round(resident.ofFiles)} MiB of files, such as the program itself`;
  return plainRow(what, 'MiB', [resident.mib], { goal, note });
}
