import type { Bench } from '../bench.ts';
import { exceed, show } from '../compare.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, verify } from '../sample.ts';
import type { LoadRequest } from '../load/job.ts';
import { startBare, startLatchkey, type Latchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import type { Theme } from '../theme.ts';

const paths = ['/statusz', '/metrics'] as const;

type Round = { verifies: Measured; reads: Measured };

export const statusTheme: Theme = {
  name: 'status',
  about: '/statusz and /metrics with 1,000,000 records, and the longest pause of verifies during them',
  async *measure(bench) {
    const licenses = bench.count(1_000_000);
    const contents = { role: 'agent', licenses, waiting: bench.count(100_000) } as const;
    const upstream = (await startBare(bench, { hangs: true })).tcp;
    const agent = await startLatchkey(bench, { state: await copyOfStore(bench, contents), upstream });
    const bare = await startBare(bench);
    for (const path of paths) {
      const request = { method: 'GET', path, headers: agent.admin, body: '' } as const;
      const { without, beside } = await bench.alternate({
        // Reads from another server, because the reader itself uses the processors.
        without: () => besideReads(bench, agent, readRepeatedly(bench, bare, verify)),
        beside: () => besideReads(bench, agent, readRepeatedly(bench, agent, request)),
      });
      const what = `${path}, ${licenses.toLocaleString('en')} records`;
      yield show(
        `${what}: duration`,
        { reads: beside.map((round) => round.reads) },
        { by: 'p50', goal: { atMost: 5 } },
      );
      const verifies = (rounds: readonly Round[]) => rounds.map((round) => round.verifies);
      const goal = { atMost: 2 };
      const to = { 'without it': verifies(without) };
      yield exceed(`${what}: added to the slowest verify`, { beside: verifies(beside) }, to, {
        by: 'max',
        goal,
      });
    }
  },
};

/** Verifies at a low rate during a read, so that a pause shows as latency. */
async function besideReads(bench: Bench, agent: Latchkey, reading: Promise<Measured>): Promise<Round> {
  const job = { target: agent.tcp, request: verify, keys: oneKey, connections: 8, rate: 1000 } as const;
  const [verifies, reads] = await Promise.all([bench.load(agent, job), reading]);
  return { verifies, reads };
}

/** Reads ten times per second. */
async function readRepeatedly(bench: Bench, server: Server, request: LoadRequest): Promise<Measured> {
  return await bench.load(server, { target: server.tcp, request, keys: oneKey, connections: 1, rate: 10 });
}
