import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { alternate } from '../figure.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, use } from '../sample.ts';
import { startBare, type Server } from '../server.ts';
import { startAgent, startAuthority } from '../servers.ts';
import type { Row, Theme } from '../theme.ts';

export const useTheme: Theme = {
  name: 'use',
  about: 'durable uses, against one SQLite transaction each and against none',
  async *measure(bench) {
    const servers = {
      authority: await startAuthority(bench),
      agent: await startAgent(bench),
      transactions: await startBare(bench, { database: join(bench.directory, 'transactions.db') }),
      memory: await startBare(bench),
    };
    yield* many(bench, servers);
    yield* one(bench, servers);
  },
};

type Servers = Readonly<Record<'authority' | 'agent' | 'transactions' | 'memory', Server>>;

async function* many(bench: Bench, servers: Servers): AsyncIterable<Row> {
  const put = usesOver(bench, 64);
  const { authority, agent, transactions, memory } = await bench.alternate({
    authority: () => put(servers.authority),
    agent: () => put(servers.agent),
    transactions: () => put(servers.transactions),
    memory: () => put(servers.memory),
  });
  const by = 'perSecond';
  const what = 'use, 64 connections';
  const each = { 'a transaction each': transactions };
  yield compare(`${what}, authority, to a transaction each`, { authority }, each, {
    by,
    goal: { atLeast: 4 },
  });
  const none = { 'no store': memory };
  yield compare(`${what}, authority, to no store`, { authority }, none, { by, goal: { atLeast: 0.4 } });
  yield compare(`${what}, agent, to authority`, { agent }, { authority }, { by, goal: { atLeast: 0.7 } });
}

/** Runs last, when the servers are warm. */
async function* one(bench: Bench, servers: Servers): AsyncIterable<Row> {
  const put = usesOver(bench, 1);
  const { authority, agent, transactions } = await alternate(bench.effort.fewRounds, {
    authority: () => put(servers.authority),
    agent: () => put(servers.agent),
    transactions: () => put(servers.transactions),
  });
  const each = { 'a transaction each': transactions };
  for (const [role, rounds] of Object.entries({ authority, agent })) {
    const what = `use, 1 connection, ${role}, to a transaction each`;
    yield compare(what, { [role]: rounds }, each, { by: 'perSecond', goal: { atLeast: 0.7 } });
  }
}

function usesOver(bench: Bench, connections: number): (server: Server) => Promise<Measured> {
  return (server) => bench.load(server, { target: server.tcp, request: use, keys: oneKey, connections });
}
