import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.ts';
import { residentMib } from '../process.ts';
import { programs, type Form } from '../program.ts';
import { verify } from '../sample.ts';
import { startBare, startLatchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, type Row, type Theme } from '../theme.ts';

/** Verifies, as a multiple of the keys that are asked for. */
const timesEach = 5;
const goals = { idle: { atMost: 95 }, used: { atMost: 150 } } as const;

export const memoryTheme: Theme = {
  name: 'memory',
  about: 'resident memory of an agent, idle and after 1,000,000 verifies over 200,000 keys',
  async *measure(bench) {
    const licenses = bench.count(200_000);
    const state = await copyOfStore(bench, { role: 'agent', licenses });
    const upstream = (await startBare(bench, { licenses })).tcp;
    for (const form of bench.shippedForms()) yield* rowsOf(bench, { form, licenses, state, upstream });
  },
};

type Given = { form: Form; licenses: number; state: string; upstream: { port: number } };

async function* rowsOf(bench: Bench, { form, licenses, state, upstream }: Given): AsyncIterable<Row> {
  const titles = {
    idle: `resident memory of an agent, ${form}, idle`,
    used: `the same after ${(licenses * timesEach).toLocaleString('en')} verifies over ${licenses.toLocaleString('en')} keys`,
  };
  await using agent = await startLatchkey(bench, { state, upstream, program: programs[form] });
  await sleep(bench.effort.seconds * 1000);
  const idle = residentMib(agent.pid);
  if (idle === null) {
    yield notMeasured(titles.idle, 'MiB', goals.idle, 'there is no /proc');
    return;
  }
  yield plainRow(titles.idle, 'MiB', [idle], { goal: goals.idle });
  const keys = { first: 0, count: licenses };
  for (let time = 0; time < timesEach; time += 1) {
    const job = { target: agent.socket, request: verify, keys, connections: 64 };
    await bench.load(agent, { ...job, ending: 'each key once' });
  }
  await sleep(bench.effort.seconds * 1000);
  yield plainRow(titles.used, 'MiB', [residentMib(agent.pid) ?? Number.NaN], { goal: goals.used });
}
