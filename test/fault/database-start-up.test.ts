import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDaemon } from '../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../src/config/load.ts';
import type { TimeSource } from '../../src/daemon/system/clock.ts';
import { Database } from '../../src/features/postgres/store/database.ts';
import { migrate, newestSchema } from '../../src/features/postgres/store/migrations.ts';
import { certificate, privateKey } from '../support/network/certificate.ts';
import { spawnDaemon, startDaemonProcess } from '../support/process/daemon-process.ts';
import { urlByPort } from '../features/postgres/support/watched-node.ts';
import { freePort } from '../support/network/free-port.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../features/postgres/support/postgres.ts';
import { urlOf } from '../features/postgres/support/postgres-url.ts';
import { silent } from '../support/silent-log.ts';
import { startStandby } from '../features/postgres/support/standby.ts';
import { temporaryDirectory } from '../support/temporary.ts';

describe.skipIf(!hasPostgres)('a start on a database', () => {
  let server: PostgresServer;
  let owner: Database;
  beforeAll(async () => {
    server = await startPostgres();
    owner = new Database(server.settings());
    await prepare();
  });
  afterAll(async () => {
    await owner?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  /** Prepares databases in all the states that a start may find. */
  async function prepare(): Promise<void> {
    const keep = (file: string, text: string): void => {
      const path = join(server.address.host, file);
      writeFileSync(path, text, { mode: 0o600 });
      const { uid, gid } = statSync(server.address.host);
      chownSync(path, uid, gid);
    };
    keep('server.crt', certificate);
    keep('server.key', privateKey);
    for (const file of ['cert', 'key']) {
      const path = join(server.address.host, file === 'cert' ? 'server.crt' : 'server.key');
      await owner.query(`ALTER SYSTEM SET ssl_${file}_file = '${path}'`);
    }
    await owner.query('CREATE SCHEMA shop');
    await owner.query('CREATE TABLE shop.cart (id bigint)');
    await owner.query(`CREATE ROLE guest LOGIN PASSWORD 'secret'`);
    for (const schema of ['sold', 'newer', 'closed']) {
      await using database = new Database(server.settings({ schema }));
      await migrate(database);
    }
    await owner.query('CREATE DATABASE closed');
    await owner.query('REVOKE CONNECT ON DATABASE closed FROM PUBLIC');
    await owner.query('REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA closed FROM PUBLIC');
    await owner.query('GRANT USAGE ON SCHEMA closed TO guest');
    await owner.query('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA closed TO guest');
    await owner.query('GRANT USAGE ON SCHEMA sold TO guest');
    await owner.query('GRANT SELECT ON ALL TABLES IN SCHEMA sold TO guest');
    await owner.query(`UPDATE newer.schema_version SET version = 9, minimum = ${newestSchema + 1}`);
  }

  /** Everything in the database that a start might change. */
  async function contents(): Promise<unknown> {
    const relations =
      await owner.query(`SELECT relnamespace::regnamespace::text AS schema, relname, relfilenode
      FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_' ORDER BY 1, 2`);
    const schemas = await owner.query('SELECT nspname FROM pg_namespace ORDER BY 1');
    return [relations, schemas, await owner.query('SELECT count(*) FROM sold.setting')];
  }

  /** Runs `latchkey serve` until it ends by itself. */
  async function serve(
    postgres: object,
    others: object = {},
  ): Promise<{ code: number | null; complaints: string }> {
    await using directory = temporaryDirectory();
    const configuration = { listen: { tcp: '127.0.0.1:0' }, store: { postgres }, ...others };
    await using daemon = spawnDaemon(directory.path, configuration);
    const code = await daemon.ended;
    return { code, complaints: daemon.complaints.replaceAll(directory.path, 'DIR') };
  }

  const refusals: readonly [string, () => { url: string; schema?: string }, number, string][] = [
    [
      'a wrong password',
      () => ({ url: urlOf(server.address, { password: 'wrong-one' }) }),
      78,
      'password authentication failed for user "owner" (PLACE): correct store.postgres.url.',
    ],
    [
      'no password although one is required',
      () => ({ url: urlOf(server.address, { password: '' }) }),
      78,
      'password authentication failed for user "owner" (PLACE): correct store.postgres.url.',
    ],
    [
      'an unknown role',
      () => ({ url: urlOf(server.address, { user: 'nobody' }) }),
      78,
      'password authentication failed for user "nobody" (PLACE): correct store.postgres.url.',
    ],
    [
      'an unknown database',
      () => ({ url: urlOf(server.address, { database: 'nowhere' }) }),
      78,
      'database "nowhere" does not exist (PLACE): correct store.postgres.url.',
    ],
    [
      'a server without TLS',
      () => ({ url: `postgres://owner:secret@localhost:${server.address.port}/postgres` }),
      78,
      'the connection to localhost:PORT cannot be secured (The server does not support SSL connections): turn TLS on there (ssl = on), or, for a server on this machine, end store.postgres.url in ?sslmode=disable.',
    ],
    [
      'a schema of another program',
      () => ({ url: urlOf(server.address), schema: 'shop' }),
      78,
      'the schema "shop" holds something else: choose another by store.postgres.schema.',
    ],
    [
      'a role that may not create the schema',
      () => ({ url: urlOf(server.address, { user: 'guest' }) }),
      1,
      'its role has no right to make or use the schema "latchkey" (permission denied for database postgres): run CREATE SCHEMA "latchkey" AUTHORIZATION with the name of the role, or, if the schema exists, GRANT USAGE ON SCHEMA "latchkey".',
    ],
    [
      'a role that may not connect to the database',
      () => ({ url: urlOf(server.address, { user: 'guest', database: 'closed' }) }),
      1,
      'permission denied for database "closed" (PLACE): GRANT CONNECT ON DATABASE to its role.',
    ],
    [
      'a role that may not call the functions of the schema',
      () => ({ url: urlOf(server.address, { user: 'guest' }), schema: 'closed' }),
      1,
      'its role may not call change_licenses, server_history: GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "closed" to it.',
    ],
    [
      'a role that may not write',
      () => ({ url: urlOf(server.address, { user: 'guest' }), schema: 'sold' }),
      1,
      'its role may not write account, activation, audit_event, collection, collection_member, coupon, coupon_number, idempotency, license, license_change, license_history, old_credential, product, purchase, redemption, redemption_count, series, setting, sync_agent, sync_follow, token, webhook_delivery, webhook_endpoint, webhook_event: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "sold" to it.',
    ],
    [
      'a schema of a newer version',
      () => ({ url: urlOf(server.address), schema: 'newer' }),
      1,
      `a newer Latchkey wrote it (schema 9, for versions that know at least ${newestSchema + 1}; this version knows ${newestSchema}): start a newer one.`,
    ],
  ];

  test.each(refusals)(
    'a start on a database with %s ends with one line and changes nothing',
    async (_, given, code, line) => {
      const before = await contents();
      const { address } = server;
      const outcome = await serve(given());
      const complaints = outcome.complaints
        .replaceAll(`${address.host}/.s.PGSQL.${address.port}`, 'PLACE')
        .replaceAll(String(address.port), 'PORT');
      expect({ ...outcome, complaints }).toEqual({
        code,
        complaints: `latchkey: The database is refused: ${line}\n`,
      });
      expect(await contents()).toEqual(before);
    },
  );

  test('a start on a database is refused while the state directory has an authority that was not moved', async () => {
    await using directory = temporaryDirectory();
    const listen = { tcp: '127.0.0.1:0' };
    await using before = await startDaemonProcess(directory.path, { listen });
    const token = readFileSync(join(directory.path, 'state/admin.token'), 'utf8').trim();
    const sold = await fetch(`${before.tcp}/admin/v1/products`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Press' }),
    });
    expect(sold.status).toBe(201);
    before.signal('SIGTERM');
    await before.ended;
    const postgres = { url: urlOf(server.address), schema: 'unmoved' };
    await using daemon = spawnDaemon(directory.path, { listen, store: { postgres } });
    expect([await daemon.ended, daemon.complaints]).toEqual([
      78,
      expect.stringMatching(/^latchkey: The database is refused: .*latchkey store move.*\n$/),
    ]);
    expect(await owner.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'unmoved'`)).toEqual([]);
  });

  test('a database in the configuration of an agent is a configuration error', async () => {
    const { code, complaints } = await serve(
      { url: urlOf(server.address) },
      { upstream: { base_url: 'https://api.example.com' } },
    );
    expect([code, complaints.trim().split('\n').length]).toEqual([78, 1]);
    expect(complaints).toContain('store');
  });

  test('a start on a database with an untrusted certificate is refused, and works with ca_file', async () => {
    await owner.query('ALTER SYSTEM SET ssl = on');
    await owner.query('SELECT pg_reload_conf()');
    const url = `postgres://owner:secret@localhost:${server.address.port}/postgres`;
    const refused = async (): Promise<string> => (await serve({ url })).complaints;
    await expect
      .poll(refused)
      .toMatch(
        /^latchkey: The database is refused: the connection to localhost:\d+ cannot be secured \(self-signed certificate\): set store\.postgres\.ca_file/,
      );
    await using directory = temporaryDirectory();
    const caFile = join(directory.path, 'ca.pem');
    writeFileSync(caFile, certificate);
    await using daemon = await startDaemonProcess(directory.path, {
      listen: { tcp: '127.0.0.1:0' },
      store: { postgres: { url, schema: 'secured', ca_file: caFile } },
    });
    expect((await fetch(`${daemon.tcp}/readyz`)).status).toBe(200);
    const other = `postgres://owner:secret@127.0.0.1:${server.address.port}/postgres`;
    expect(await serve({ url: other, ca_file: caFile })).toMatchObject({
      code: 78,
      complaints: expect.stringContaining('127.0.0.1') as string,
    });
  });

  test('a start waits for an unavailable database, logs it once, and continues when the database is available', async () => {
    await using late = await startPostgres();
    await late.stop();
    await using directory = temporaryDirectory();
    const url = urlByPort(late.address);
    const starting = spawnDaemon(directory.path, {
      listen: { tcp: '127.0.0.1:0' },
      store: { postgres: { url } },
    });
    await using daemon = starting;
    expect(await daemon.said('the database is not available yet: waiting for it')).toMatchObject({
      level: 'warn',
      database: `127.0.0.1:${late.address.port}`,
      error: `connect ECONNREFUSED 127.0.0.1:${late.address.port}`,
    });
    await late.start();
    await daemon.said('ready');
    expect(daemon.lines.filter(({ msg }) => msg?.includes('waiting for it'))).toHaveLength(1);
    expect(JSON.stringify(daemon.lines)).not.toContain('secret');
  });

  test('a start on a standby waits until it is promoted', async () => {
    await using primary = await startPostgres();
    await using standby = await startStandby(primary.address);
    await using directory = temporaryDirectory();
    await using daemon = spawnDaemon(directory.path, {
      listen: { tcp: '127.0.0.1:0' },
      store: { postgres: { url: urlByPort(standby.address) } },
    });
    expect(await daemon.said('the database is not available yet: waiting for it')).toMatchObject({
      error: 'it only takes reads: it is a standby',
    });
    await primary.stop('immediate');
    await standby.promote();
    await daemon.said('ready');
  });

  test('a signal ends a start that waits for its database with exit code 0', async () => {
    await using directory = temporaryDirectory();
    const url = `postgres://owner:secret@127.0.0.1:${await freePort()}/postgres?sslmode=disable`;
    await using daemon = spawnDaemon(directory.path, {
      listen: { tcp: '127.0.0.1:0' },
      store: { postgres: { url } },
    });
    await daemon.said('the database is not available yet: waiting for it');
    daemon.signal('SIGTERM');
    expect([await daemon.ended, daemon.complaints]).toEqual([0, '']);
  });

  test('a start gives up after a minute without a database, and names the reason but not the password', async () => {
    await using directory = temporaryDirectory();
    let monotonic = 0;
    const time: TimeSource = {
      read: () => ({ wall: Date.now(), monotonic: monotonic }),
      sleep: (ms) => {
        monotonic += ms;
        return Promise.resolve();
      },
    };
    const port = await freePort();
    const configuration = embeddedConfiguration({
      state_dir: join(directory.path, 'state'),
      store: { postgres: { url: `postgres://owner:secret@localhost:${port}/postgres?sslmode=disable` } },
    });
    const said = await startDaemon(configuration, { log: silent, time }).then(
      () => '',
      (error: unknown) => String(error),
    );
    expect(said).toContain(`The database at localhost:${port} cannot be used: connect ECONNREFUSED`);
    expect(said).not.toMatch(/secret|\n/);
    expect(monotonic).toBe(60_000);
  });
});
