import { join } from 'node:path';
import { hasPostgres } from '../../features/postgres/support/postgres.ts';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { licenses, startDatabase, type MeasuredDatabase } from '../database.ts';
import { unique, type LoadRequest } from '../load/job.ts';
import type { Measured } from '../load/load.ts';
import { runUpdates } from '../load/pgbench.ts';
import { start } from '../process.ts';
import type { BareDatabaseOptions } from '../reference/bare-database.ts';
import { oneKey, use, verify } from '../sample.ts';
import type { Server } from '../server.ts';
import { notMeasured, plainRow, plainSource, type Row, type Theme } from '../theme.ts';

/** The result of a load, and the processor time of the database. */
type Loaded = Measured & { readonly databaseMicros: number };

const clients = 64;
/** The default number of connections of an authority to the database. */
const pool = 16;
const goal = { atLeast: 0.6 };
const allKeys = { first: 0, count: licenses };
const underKey: LoadRequest = { ...use, headers: { ...use.headers, 'idempotency-key': unique } };

export const postgresTheme: Theme = {
  name: 'postgres',
  about: 'verify and durable uses of an authority on PostgreSQL, against bare node:http and pgbench',
  isExtra: true,
  async *measure(bench) {
    if (!hasPostgres) {
      yield notMeasured('an authority on PostgreSQL', '×', null, 'PostgreSQL is not installed');
      return;
    }
    await using database = await startDatabase(bench);
    yield* verifies(bench, database);
    yield* uses(bench, database, { what: 'use', request: use, keys: allKeys });
    yield* uses(bench, database, { what: 'use of one license', request: use, keys: oneKey });
    yield* uses(bench, database, { what: 'use with an Idempotency-Key', request: underKey, keys: allKeys });
  },
};

async function* verifies(bench: Bench, database: MeasuredDatabase): AsyncIterable<Row> {
  const bare = await startBareOn(bench, database);
  const ask = (server: Server) => (): Promise<Loaded> =>
    withDatabase(database, () =>
      bench.load(server, { target: server.tcp, request: verify, keys: allKeys, connections: clients }),
    );
  const { authority, reference } = await bench.alternate({
    authority: ask(database.authority),
    reference: ask(bare),
  });
  const what = `verify on PostgreSQL, ${clients} connections`;
  const by = 'perSecond';
  yield compare(what, { authority }, { 'bare, same read': reference }, { by, goal });
  yield databaseTime(what, { authority }, { 'bare, same read': reference });
}

type Uses = { what: string; request: LoadRequest; keys: typeof allKeys };

async function* uses(
  bench: Bench,
  database: MeasuredDatabase,
  { what, request, keys }: Uses,
): AsyncIterable<Row> {
  const { authority: server, url, referenceTable: table } = database;
  const job = { target: server.tcp, request, keys, connections: clients };
  const update = (connections: number) => (): Promise<Loaded> =>
    withDatabase(database, async () => {
      const seconds = bench.effort.seconds;
      const { count, perSecond } = await runUpdates({
        url,
        table,
        keys: keys.count,
        clients: connections,
        seconds,
      });
      const unknown = { failures: 0, p50: Number.NaN, p99: Number.NaN, max: Number.NaN, busy: null };
      return { ...unknown, requests: count, seconds, connections, perSecond, processorMicros: null };
    });
  const { authority, few, many } = await bench.alternate({
    authority: () => withDatabase(database, () => bench.load(server, job)),
    few: update(pool),
    many: update(clients),
  });
  const by = 'perSecond';
  const name = `${what} on PostgreSQL, ${clients} connections`;
  const byFew = { [`pgbench by ${pool}`]: few };
  const byMany = { [`pgbench by ${clients}`]: many };
  yield compare(`${name}, to pgbench by ${pool}`, { authority }, byFew, { by, goal });
  yield compare(`${name}, to pgbench by ${clients}`, { authority }, byMany, { by, goal });
  yield databaseTime(name, { authority }, { ...byFew, ...byMany });
}

/** The processor time of PostgreSQL per request, which the time of the authority does not include. */
function databaseTime(
  what: string,
  of: Record<string, readonly Loaded[]>,
  to: Record<string, readonly Loaded[]>,
): Row {
  const micros = (rounds: readonly Loaded[]): number[] => rounds.map(({ databaseMicros }) => databaseMicros);
  const from = Object.entries(to).map(([name, rounds]) => [name, plainSource(micros(rounds), 'µs')]);
  return plainRow(`${what}: processor time of PostgreSQL`, 'µs', Object.values(of).flatMap(micros), {
    from: Object.fromEntries(from),
  });
}

async function withDatabase(
  { processorMs }: MeasuredDatabase,
  load: () => Promise<Measured>,
): Promise<Loaded> {
  const before = processorMs() ?? Number.NaN;
  const measured = await load();
  const after = processorMs() ?? Number.NaN;
  return { ...measured, databaseMicros: ((after - before) * 1000) / measured.requests };
}

async function startBareOn(bench: Bench, { url, licenseTable }: MeasuredDatabase): Promise<Server> {
  const options: BareDatabaseOptions = { url, table: licenseTable };
  const script = join(import.meta.dirname, '../reference/bare-database.ts');
  const started = await start([process.execPath, script, JSON.stringify(options)], () => true);
  const { port } = JSON.parse(started.line) as { port: number };
  return bench.keep({ ...started, tcp: { port }, socket: { socket: '' } });
}
