import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { use } from '../sample.ts';
import { startBare, type Server } from '../server.ts';
import { startAgent, startAuthority } from '../servers.ts';
import type { Row, Theme } from '../theme.ts';

const oneKey = { first: 0, count: 1 };

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
  const connections = 64;
  const { authority, agent, ...measured } = await measureUses(bench, servers, connections);
  const transactions = { 'a transaction each': measured.transactions };
  const memory = { 'no store': measured.memory };
  const by = 'perSecond';
  const what = `use, ${connections} connections`;
  const toTransactions = `${what}, authority, to a transaction each`;
  yield compare(toTransactions, { authority }, transactions, { by, goal: { atLeast: 4 } });
  yield compare(`${what}, authority, to no store`, { authority }, memory, { by, goal: { atLeast: 0.4 } });
  yield compare(`${what}, agent, to authority`, { agent }, { authority }, { by, goal: { atLeast: 0.7 } });
}

async function* one(bench: Bench, servers: Servers): AsyncIterable<Row> {
  const { transactions, authority, agent } = await measureUses(bench, servers, 1);
  const to = { 'a transaction each': transactions };
  for (const [role, rounds] of Object.entries({ authority, agent })) {
    const what = `use, 1 connection, ${role}, to a transaction each`;
    yield compare(what, { [role]: rounds }, to, { by: 'perSecond', goal: { atLeast: 0.7 } });
  }
}

async function measureUses(bench: Bench, servers: Servers, connections: number) {
  const put = (server: Server) => () =>
    bench.load(server, { target: server.tcp, request: use, keys: oneKey, connections });
  const contestants = {
    authority: put(servers.authority),
    agent: put(servers.agent),
    transactions: put(servers.transactions),
    memory: put(servers.memory),
  };
  return await bench.alternate(contestants);
}
