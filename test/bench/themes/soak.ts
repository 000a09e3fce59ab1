import type { Bench } from '../bench.ts';
import { residentMemory } from '../process.ts';
import { use, verify } from '../sample.ts';
import { startBare, startLatchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, type Theme } from '../theme.ts';

const usesPerSecond = 50;
/** A rate above that of the uses, so that the outbox stays empty. */
const settings = { sync: { rate: 1000, concurrency: 16 } };

export const soakTheme: Theme = {
  name: 'soak',
  about: 'resident memory of an agent under load for 10 minutes',
  isExtra: true,
  async *measure(bench) {
    const licenses = bench.count(200_000);
    const state = await copyOfStore(bench, { role: 'agent', licenses });
    const upstream = (await startBare(bench, { licenses })).tcp;
    const agent = await startLatchkey(bench, { state, upstream, settings, asService: true });
    if (residentMemory(agent.pid) === null) {
      yield notMeasured('resident memory under load', 'MiB', null, 'there is no /proc');
      return;
    }
    const parts = bench.isQuick ? 2 : 10;
    const seconds = bench.effort.soakSeconds / parts;
    const resident: number[] = [];
    for (let part = 0; part < parts; part += 1) {
      await loadForAWhile(bench, agent, { licenses, seconds });
      resident.push(residentMemory(agent.pid)?.mib ?? Number.NaN);
    }
    const settled = resident.slice(1);
    const what = 'resident memory of an agent over 10 minutes of load, from the second on';
    yield plainRow(what, 'MiB', settled, { goal: { atMost: 150 } });
    const growth = (settled.at(-1) ?? Number.NaN) / (settled[0] ?? Number.NaN);
    yield plainRow('resident memory after the tenth minute to the second', '×', [growth], {
      goal: { atMost: 1.05 },
    });
  },
};

/** Verifies all keys as fast as possible, and uses keys at the same time. */
async function loadForAWhile(
  bench: Bench,
  agent: Server,
  { licenses, seconds }: { licenses: number; seconds: number },
): Promise<void> {
  const job = { target: agent.socket, keys: { first: 0, count: licenses }, ending: { seconds } };
  await Promise.all([
    bench.load(agent, { ...job, request: verify, connections: 16 }),
    bench.load(agent, { ...job, request: use, connections: 4, rate: usesPerSecond }),
  ]);
}
