import type { Bench } from '../bench.ts';
import { exceed, show } from '../compare.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, verify } from '../sample.ts';
import { startBare, startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import type { Theme } from '../theme.ts';

const paths = ['/statusz', '/metrics'] as const;

type Round = { verifies: Measured; reads: Measured | null };

export const statusTheme: Theme = {
  name: 'status',
  about: '/statusz and /metrics with 1,000,000 records, and the longest pause of verifies beside them',
  async *measure(bench) {
    const licenses = bench.count(1_000_000);
    const contents = { role: 'agent', licenses, waiting: bench.count(100_000) } as const;
    const upstream = (await startBare(bench, { hangs: true })).tcp;
    const agent = await startLatchkey(bench, { state: await copyOfStore(bench, contents), upstream });
    for (const path of paths) {
      const contestants: Record<'alone' | 'beside', () => Promise<Round>> = {
        alone: async () => ({ verifies: await ask(bench, agent), reads: null }),
        beside: async () => {
          const [verifies, reads] = await Promise.all([ask(bench, agent), read(bench, agent, path)]);
          return { verifies, reads };
        },
      };
      const { alone, beside } = await bench.alternate(contestants);
      const what = `${path}, ${licenses.toLocaleString('en')} records`;
      const reads = beside.flatMap((round) => round.reads ?? []);
      yield show(`${what}: duration`, { reads }, { by: 'p50', goal: { atMost: 5 } });
      const verifies = (rounds: readonly Round[]) => rounds.map((round) => round.verifies);
      const goal = { atMost: 2 };
      const to = { 'without it': verifies(alone) };
      yield exceed(`${what}: added to the slowest verify`, { beside: verifies(beside) }, to, {
        by: 'max',
        goal,
      });
    }
  },
};

/** Verifies at a rate that leaves the server room: a pause is seen as latency. */
async function ask(bench: Bench, agent: Latchkey): Promise<Measured> {
  const job = { target: agent.tcp, request: verify, keys: oneKey, connections: 8 };
  return await bench.load(agent, { ...job, rate: 1000 });
}

/** Reads it ten times a second. */
async function read(bench: Bench, agent: Latchkey, path: string): Promise<Measured> {
  const request = { method: 'GET', path, headers: agent.admin, body: '' } as const;
  const job = { target: agent.tcp, request, keys: oneKey, connections: 1 };
  return await bench.load(agent, { ...job, rate: 10 });
}
