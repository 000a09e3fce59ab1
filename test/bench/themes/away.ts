import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { verify } from '../sample.ts';
import { startBare, startLatchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import type { Theme } from '../theme.ts';

export const awayTheme: Theme = {
  name: 'away',
  about: 'verify while the upstream hangs, and while 10,000 operations wait',
  async *measure(bench) {
    const licenses = bench.count(10_000);
    const contents = { role: 'agent', licenses } as const;
    const few = await copyOfStore(bench, { ...contents, waiting: 10 });
    const many = await copyOfStore(bench, { ...contents, waiting: licenses });
    const agents = {
      idle: await startAgent(bench, await copyOfStore(bench, contents), { hangs: false }),
      hanging: await startAgent(bench, few, { hangs: true }),
      waiting: await startAgent(bench, many, { hangs: false }),
    };
    const ask = (server: Server) => () =>
      bench.load(server, {
        target: server.tcp,
        request: verify,
        keys: { first: licenses - 1, count: 1 },
        connections: 64,
      });
    const contestants = {
      idle: ask(agents.idle),
      hanging: ask(agents.hanging),
      waiting: ask(agents.waiting),
    };
    const { idle, hanging, waiting } = await bench.alternate(contestants);
    const by = { by: 'perSecond', goal: { atLeast: 0.95 } } as const;
    yield compare('verify while the upstream hangs, agent', { hanging }, { idle }, by);
    const number = licenses.toLocaleString('en');
    yield compare(`verify while ${number} operations wait, agent`, { waiting }, { idle }, by);
  },
};

async function startAgent(bench: Bench, state: string, { hangs }: { hangs: boolean }): Promise<Server> {
  const upstream = await startBare(bench, { hangs, licenses: bench.count(10_000) });
  return await startLatchkey(bench, { state, upstream: upstream.tcp });
}
