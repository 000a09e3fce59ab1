import { setTimeout as sleep } from 'node:timers/promises';
import { LocalClient } from '../../../src/daemon/local-client.ts';
import type { Bench } from '../bench.ts';
import { ratio } from '../figure.ts';
import type { UsesSeen } from '../reference/bare.ts';
import { use } from '../sample.ts';
import { startBare, startLatchkey, type Latchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { plainSource, type Theme } from '../theme.ts';
import { runLoop } from '../undici-loop.ts';

const concurrency = 64;
/** A rate that is higher than possible. */
const noRate = 1_000_000;
/** The time limit for an outbox. */
const longestMs = 60_000;

export const drainTheme: Theme = {
  name: 'drain',
  about: 'an agent sends its outbox to a plain upstream, against a bare undici loop',
  async *measure(bench) {
    const uses = bench.count(5000);
    const upstream = await startBare(bench, { licenses: uses });
    const state = await copyOfStore(bench, { role: 'agent', licenses: uses });
    const settings = { sync: { concurrency, rate: noRate } };
    const agent = await startLatchkey(bench, { state, upstream: upstream.tcp, settings });
    const contestants = {
      agent: () => drain(bench, { agent, upstream, uses }),
      loop: () =>
        runLoop({ port: upstream.tcp.port, uses, concurrency: concurrency, warmUp: Math.min(uses, 2000) }),
    };
    const measured = await bench.alternate(contestants);
    yield {
      what: `drain of ${uses.toLocaleString('en')} uses, ${concurrency} at once, to a bare undici loop`,
      unit: '×',
      figure: ratio(measured.agent, measured.loop),
      goal: { atLeast: 0.7 },
      from: { agent: plainSource(measured.agent, '/s'), 'undici loop': plainSource(measured.loop, '/s') },
      note: null,
    };
  },
};

type Drained = { readonly agent: Latchkey; readonly upstream: Server; readonly uses: number };

/** Collects uses of as many keys, sends them, and gives the rate at which the upstream received them. */
async function drain(bench: Bench, { agent, upstream, uses }: Drained): Promise<number> {
  const admin = new LocalClient(`http://127.0.0.1:${agent.tcp.port}`, agent.admin);
  const count = `http://127.0.0.1:${upstream.tcp.port}/uses`;
  await fetch(count, { method: 'DELETE' });
  await admin.postJson('/admin/v1/sync/pause', {});
  const keys = { first: 0, count: uses };
  const job = { target: agent.tcp, request: use, keys, connections: 64, ending: 'each key once' } as const;
  await bench.load(agent, job);
  await admin.postJson('/admin/v1/sync/resume', {});
  const deadline = performance.now() + longestMs;
  for (;;) {
    const seen = (await (await fetch(count)).json()) as UsesSeen;
    if (seen.count === uses) return ((uses - 1) * 1000) / (seen.lastAt - seen.firstAt);
    if (performance.now() > deadline) throw new Error(`the upstream got ${seen.count} of ${uses} uses`);
    await sleep(20);
  }
}
