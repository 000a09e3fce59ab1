import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { ratio } from '../figure.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, use } from '../sample.ts';
import { startBare, type Server } from '../server.ts';
import { plainSource, type Row, type Theme } from '../theme.ts';
import { runLoop } from '../undici-loop.ts';

const concurrency = 64;

export const boundsTheme: Theme = {
  name: 'bounds',
  about: 'the least code that stores uses and operations as durably, in two threads',
  isExtra: true,
  async *measure(bench) {
    yield* uses(bench);
    yield* drain(bench);
  },
};

/** The same comparisons as `use`. */
async function* uses(bench: Bench): AsyncIterable<Row> {
  const withWriter = async (hasOutbox: boolean): Promise<Server> =>
    await startBare(bench, { writer: { file: newFile(bench), hasOutbox } });
  const servers = {
    authority: await withWriter(false),
    agent: await withWriter(true),
    transactions: await startBare(bench, { database: newFile(bench) }),
  };
  const over = async (connections: number): Promise<Record<keyof typeof servers, Measured[]>> => {
    const put = (server: Server): Promise<Measured> =>
      bench.load(server, { target: server.tcp, request: use, keys: oneKey, connections });
    return await bench.alternate({
      authority: () => put(servers.authority),
      agent: () => put(servers.agent),
      transactions: () => put(servers.transactions),
    });
  };
  const named = ({ authority, agent, transactions }: Awaited<ReturnType<typeof over>>) => ({
    authority: { 'least authority': authority },
    agent: { 'least agent': agent },
    transactions: { 'a transaction each': transactions },
  });
  const how = { by: 'perSecond', goal: null } as const;
  const many = named(await over(64));
  yield compare('use, 64 connections, least agent, to least authority', many.agent, many.authority, how);
  const one = named(await over(1));
  const what = 'use, 1 connection, to a transaction each';
  yield compare(`${what}: least authority`, one.authority, one.transactions, how);
  yield compare(`${what}: least agent`, one.agent, one.transactions, how);
}

/** The same comparison as `drain`. Both contestants are warm, as an agent is after some rounds. */
async function* drain(bench: Bench): AsyncIterable<Row> {
  const count = bench.count(5000);
  const upstream = await startBare(bench, { licenses: count });
  const options = { port: upstream.tcp.port, uses: count, concurrency, warmUp: 3 * count };
  const { agent, loop } = await bench.alternate({
    agent: () => runLoop({ ...options, file: newFile(bench) }),
    loop: () => runLoop(options),
  });
  yield {
    what: `drain of ${count.toLocaleString('en')} uses, ${concurrency} at once, to a bare undici loop: least agent`,
    unit: '×',
    figure: ratio(agent, loop),
    goal: null,
    from: { 'least agent': plainSource(agent, '/s'), 'undici loop': plainSource(loop, '/s') },
    note: null,
  };
}

function newFile(bench: Bench): string {
  return join(bench.directory, `bounds-${randomUUID()}.db`);
}
