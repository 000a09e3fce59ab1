import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { alternate } from '../figure.ts';
import { oneKey, verify } from '../sample.ts';
import type { Server } from '../server.ts';
import { startAll, type Servers } from '../servers.ts';
import type { Row, Theme } from '../theme.ts';

const transports = { TCP: 'tcp', socket: 'socket' } as const;
const roles = ['authority', 'agent'] as const;

export const verifyTheme: Theme = {
  name: 'verify',
  about: 'verify of a known key, against bare node:http',
  async *measure(bench) {
    const servers = await startAll(bench);
    for (const connections of [64, 1]) {
      for (const transport of Object.keys(transports) as (keyof typeof transports)[]) {
        yield* rowsOf(bench, servers, { connections, transport });
      }
    }
  },
};

async function* rowsOf(
  bench: Bench,
  servers: Servers,
  { connections, transport }: { connections: number; transport: keyof typeof transports },
): AsyncIterable<Row> {
  const ask = (server: Server) =>
    bench.load(server, { target: server[transports[transport]], request: verify, keys: oneKey, connections });
  const contestants = {
    bare: () => ask(servers.bare),
    authority: () => ask(servers.authority),
    agent: () => ask(servers.agent),
  };
  // The measurement with one connection runs last, when the servers are warm.
  const measured = await (connections === 1
    ? alternate(bench.effort.fewRounds, contestants)
    : bench.alternate(contestants));
  const to = { bare: measured.bare };
  for (const role of roles) {
    const what = `verify, ${connections} connection${connections === 1 ? '' : 's'}, ${transport}, ${role}`;
    const of = { [role]: measured[role] };
    yield compare(what, of, to, { by: 'perSecond', goal: { atLeast: connections === 1 ? 0.85 : 0.7 } });
    if (connections > 1) yield compare(`${what}: p99`, of, to, { by: 'p99', goal: { atMost: 1.5 } });
  }
}
