import { setTimeout as sleep } from 'node:timers/promises';
import { LocalClient } from '../../../src/daemon/local-client.ts';
import type { Bench } from '../bench.ts';
import { ratio } from '../figure.ts';
import { use } from '../sample.ts';
import { startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { plainSource, type Theme } from '../theme.ts';
import { runLoop } from '../undici-loop.ts';

const concurrency = 64;
/** The time limit for a delivery, and for the first answer that shows that the upstream is a Latchkey. */
const longestMs = 60_000;

export const deliveryTheme: Theme = {
  name: 'delivery',
  about:
    'an agent sends its outbox to a Latchkey, each change under its id, against a bare undici loop to it',
  async *measure(bench) {
    const uses = bench.count(2000);
    const authority = await startLatchkey(bench, {
      state: await copyOfStore(bench, { role: 'authority', licenses: uses }),
    });
    const agent = await startLatchkey(bench, {
      state: await copyOfStore(bench, { role: 'agent', licenses: uses }),
      upstream: authority.tcp,
    });
    await until(agent, ({ upstream }) => upstream.protocol === 'latchkey');
    const { port } = authority.tcp;
    const measured = await bench.alternate({
      agent: () => deliver(bench, agent, uses),
      loop: () => runLoop({ port, uses, concurrency, warmUp: Math.min(uses, 2000) }),
    });
    yield {
      what: `delivery of ${uses.toLocaleString('en')} uses to a Latchkey, to a bare undici loop`,
      unit: '×',
      figure: ratio(measured.agent, measured.loop),
      goal: null,
      from: { agent: plainSource(measured.agent, '/s'), 'undici loop': plainSource(measured.loop, '/s') },
      note: null,
    };
  },
};

type Status = {
  upstream: { protocol: string };
  outbox: { pending: number; in_flight: number; delivered: number };
};

async function statusOf(agent: Latchkey): Promise<Status> {
  const response = await fetch(`http://127.0.0.1:${agent.tcp.port}/statusz`, { headers: agent.admin });
  return (await response.json()) as Status;
}

async function until(agent: Latchkey, holds: (status: Status) => boolean): Promise<void> {
  const deadline = performance.now() + longestMs;
  for (;;) {
    const status = await statusOf(agent);
    if (holds(status)) return;
    if (performance.now() > deadline)
      throw new Error(`the agent has not come far: ${JSON.stringify(status)}`);
    await sleep(5);
  }
}

/** Collects uses of as many keys, sends them, and gives the rate at which they were delivered. */
async function deliver(bench: Bench, agent: Latchkey, uses: number): Promise<number> {
  const admin = new LocalClient(`http://127.0.0.1:${agent.tcp.port}`, agent.admin);
  await admin.postJson('/admin/v1/sync/pause', {});
  const keys = { first: 0, count: uses };
  await bench.load(agent, {
    target: agent.tcp,
    request: use,
    keys,
    connections: 64,
    ending: 'each key once',
  });
  const began = performance.now();
  await admin.postJson('/admin/v1/sync/resume', {});
  await until(agent, ({ outbox }) => outbox.pending + outbox.in_flight === 0);
  return (uses * 1000) / (performance.now() - began);
}
