import { exceed } from '../compare.ts';
import { oneKey, verify } from '../sample.ts';
import type { Server } from '../server.ts';
import { startAll } from '../servers.ts';
import type { Theme } from '../theme.ts';

const rate = 1000;

export const latencyTheme: Theme = {
  name: 'latency',
  about: `added latency at a fixed ${rate} verifies a second`,
  async *measure(bench) {
    const servers = await startAll(bench);
    const ask = (server: Server) => () =>
      bench.load(server, {
        target: server.tcp,
        request: verify,
        keys: oneKey,
        connections: 16,
        rate,
        ending: { seconds: bench.effort.seconds * 2 },
      });
    const contestants = {
      bare: ask(servers.bare),
      authority: ask(servers.authority),
      agent: ask(servers.agent),
    };
    const { bare, authority, agent } = await bench.alternate(contestants);
    const goal = { atMost: 0.7 };
    for (const [role, rounds] of Object.entries({ authority, agent })) {
      const what = `added p99 at ${rate.toLocaleString('en')} verifies/s, ${role}`;
      yield exceed(what, { [role]: rounds }, { bare }, { by: 'p99', goal });
    }
  },
};
