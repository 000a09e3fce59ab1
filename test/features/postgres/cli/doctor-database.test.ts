import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newestSchema } from '../../../../src/features/postgres/store/migrations.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { migrate } from '../../../../src/features/postgres/store/migrations.ts';
import { surveyDatabase } from '../../../../src/features/postgres/store/survey.ts';
import { latchkey, type Outcome } from '../../../support/process/command-line.ts';
import { startNode } from '../support/nodes.ts';
import { urlByPort } from '../support/watched-node.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { hasPooler, startPooler } from '../support/pooler.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { startStandby } from '../support/standby.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** What was found of the database, a line each, in the order of the doctor. */
function found({ out }: Outcome): string[] {
  const lines = out.split('\n').map((line) => line.replace(/ {2,}/g, ' '));
  const from = lines.findIndex((line) => /PostgreSQL|database/.test(line));
  return from === -1 ? [] : lines.slice(from).filter((line) => line !== '');
}

const pooled = 'a pooler is in between, in';

describe.skipIf(!hasPostgres)('doctor on PostgreSQL', () => {
  let server: PostgresServer;
  let owner: Database;
  beforeAll(async () => {
    server = await startPostgres();
    owner = new Database(server.settings());
    await owner.query(`CREATE ROLE guest LOGIN PASSWORD 'secret'`);
    await using ready = new Database(server.settings({ schema: 'ready' }));
    await migrate(ready);
  });
  afterAll(async () => {
    await owner?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function examine(postgres: object, ...words: string[]): Promise<Outcome> {
    await using directory = temporaryDirectory();
    const file = join(directory.path, 'latchkey.yaml');
    const configuration = { state_dir: join(directory.path, 'state'), store: { postgres } };
    writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
    const outcome = await latchkey(...(words.length > 0 ? words : ['doctor']), '--config', file);
    expect(outcome.out + outcome.err).not.toContain('secret@');
    return outcome;
  }

  test('doctor and config check --connect report a healthy database and change nothing', async () => {
    const postgres = { url: urlByPort(server.address), schema: 'ready', pool: 16 };
    const outcome = await examine(postgres);
    expect(outcome).toMatchObject({ code: 0, err: '' });
    const well = [
      expect.stringMatching(/^ok PostgreSQL \d+\.\d+.* answers at 127\.0\.0\.1:\d+$/),
      'ok the connection to it does not use TLS, and stays on this machine',
      `ok this version can use its schema ready (${newestSchema})`,
      'ok the clock agrees with that of the database',
      'ok what is committed is safely on its disk (synchronous_commit on)',
      expect.stringMatching(
        /^ok 0 nodes are connected, and each may take 17 connections; \d+ of 147 are in use$/,
      ),
    ];
    expect(found(outcome)).toEqual(well);
    const checked = await examine(postgres, 'config', 'check', '--connect');
    expect([checked.code, found(checked)]).toEqual([0, well]);
    const schemas = await owner.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'latchkey'`);
    expect(schemas).toEqual([]);
  });

  test('doctor reports why the database cannot be reached', async () => {
    const port = await freePort();
    const outcome = await examine({ url: urlByPort(server.address, port) });
    expect(outcome.code).toBe(1);
    expect(found(outcome)).toEqual([
      `fail the database at 127.0.0.1:${port} cannot be reached: connect ECONNREFUSED 127.0.0.1:${port} → check store.postgres.url, the server, and the firewall between`,
    ]);
  });

  test('doctor reports a database without free connections', async () => {
    await owner.query(`CREATE ROLE crowd LOGIN PASSWORD 'secret' CONNECTION LIMIT 0`);
    const outcome = await examine({ url: urlByPort({ ...server.address, user: 'crowd' }) });
    expect(outcome.code).toBe(1);
    expect(found(outcome)).toEqual([
      `fail the database at 127.0.0.1:${server.address.port} has no free connections: too many connections for role "crowd" → raise max_connections, or the limit of the role or database, or lower store.postgres.pool`,
    ]);
  });

  test('doctor reports a wrong password, and a role that cannot create its schema', async () => {
    const wrong = await examine({ url: urlByPort({ ...server.address, password: 'wrong' }) });
    expect(wrong.code).toBe(1);
    expect(found(wrong)[0]).toMatch(
      /^fail The database is refused: password authentication failed for user "owner"/,
    );
    const guest = await examine({ url: urlByPort({ ...server.address, user: 'guest' }) });
    expect(guest.code).toBe(1);
    expect(found(guest)).toContain(
      'fail its schema latchkey does not exist, and the role may not create it → run CREATE SCHEMA latchkey AUTHORIZATION, followed by the name of the role',
    );
    const other = await examine({ url: urlByPort({ ...server.address, user: 'guest' }), schema: 'ready' });
    expect(found(other)[2]).toMatch(
      /^fail The database is refused: its role has no right to make or use the schema "ready"/,
    );
  });

  test('doctor reports settings that may lose commits, and too few connections', async () => {
    await using careless = await startPostgres({ isDurable: false });
    const url = urlByPort(careless.address);
    const lines = found(await examine({ url }));
    expect(lines).toContain(
      'fail fsync or full_page_writes is off: what was answered may be lost in a power failure → turn both on',
    );
    expect(lines).toContain('warn its schema latchkey does not exist yet → the first start creates it');
    await using other = new Database(careless.settings());
    await other.query('ALTER ROLE owner CONNECTION LIMIT 10');
    await using _ = await startNode({ address: careless.address }, { schema: 'latchkey', pool: 4 });
    const few = found(await examine({ url, pool: 16 }));
    expect(few).toContainEqual(
      expect.stringMatching(
        /^warn 1 node is connected, and each may take 17 connections; \d+ of 10 are in use → raise max_connections, or the limit of the role or database, or lower store.postgres.pool$/,
      ),
    );
  });

  test('doctor reports standbys and replication settings', async () => {
    await using primary = await startPostgres();
    await using standby = await startStandby(primary.address);
    await using other = new Database(primary.settings());
    await other.query('ALTER ROLE owner SET synchronous_commit = off');
    const lines = found(await examine({ url: urlByPort(primary.address) }));
    expect(lines).toContainEqual(expect.stringMatching(/^warn synchronous_commit is off for this role/));
    expect(lines).toContain(
      'warn 1 standby follows it asynchronously: a failover loses what has not arrived there yet → set synchronous_standby_names if nothing that was answered may be lost',
    );
    const following = await examine({ url: urlByPort(standby.address) });
    expect(following.code).toBe(1);
    expect(found(following)).toContain(
      'fail it only takes reads: it is a standby → no node can use the database until that is corrected',
    );
  });

  test('doctor reports long transactions', async () => {
    const survey = async (longMs: number): Promise<readonly string[]> =>
      (await surveyDatabase(server.address, { schema: 'ready', now: () => 0, longMs })).longTransactions;
    await owner.lend(async (connection) => {
      await connection.begin(null, []);
      expect(await survey(0)).toEqual([expect.stringMatching(/^process \d+ \(latchkey\)$/)]);
      expect(await survey(3_600_000)).toEqual([]);
      await connection.rollback();
    });
  });

  test('doctor reports a difference between the clocks', async () => {
    const now = (): number => Date.now() + 60_000;
    const { aheadMs } = await surveyDatabase(server.address, { schema: 'ready', now, longMs: 0 });
    expect(aheadMs).toBeGreaterThan(55_000);
    expect(aheadMs).toBeLessThan(65_000);
  });

  test.skipIf(!hasPooler)('doctor reports a connection pooler', async () => {
    const direct = { listen_url: urlByPort(server.address, server.address.port) };
    for (const [mode, more, line] of [
      ['session', {}, `ok ${pooled} session mode`],
      [
        'transaction',
        {},
        `fail ${pooled} transaction mode: notifications from other nodes are lost, and prepared statements may be → set store.postgres.listen_url to the database itself`,
      ],
      ['transaction', direct, `ok ${pooled} transaction mode`],
    ] as const) {
      await using pooler = await startPooler(server.address, mode);
      const url = urlByPort(server.address, pooler.port);
      const outcome = await examine({ url, schema: 'ready', ...more });
      expect(found(outcome).filter((each) => each.includes(pooled))).toEqual([line]);
    }
  });

  test('doctor checks listen_url', async () => {
    const url = urlByPort(server.address);
    await owner.query('CREATE DATABASE elsewhere');
    for (const [listenUrl, line] of [
      [url, /^ok notifications from other nodes arrive at 127\.0\.0\.1:\d+ \(store\.postgres\.listen_url\)$/],
      [
        urlByPort({ ...server.address, database: 'elsewhere' }),
        /^fail notifications from other nodes do not arrive at \S+ \(store\.postgres\.listen_url\) → point it to the same database as store\.postgres\.url, past any pooler$/,
      ],
      [
        urlByPort({ ...server.address, password: 'wrong' }),
        /^fail notifications from other nodes do not arrive at .*: password authentication failed for user "owner" → /,
      ],
    ] as const) {
      const outcome = await examine({ url, schema: 'ready', listen_url: listenUrl });
      expect([outcome.code, found(outcome).at(-1)]).toEqual([
        line.source.startsWith('^ok') ? 0 : 1,
        expect.stringMatching(line),
      ]);
    }
  });
});
