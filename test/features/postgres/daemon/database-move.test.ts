import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDaemon } from '../../../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../../../src/config/load.ts';
import { backUp } from '../../../../src/store/sqlite/files/backup.ts';
import { storeOf } from '../../../../src/domain/latchkey.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { latchkey, type Outcome } from '../../../support/process/command-line.ts';
import { storeActivations } from '../../leases/support/stored-activations.ts';
import {
  activationsOf,
  createShop,
  deliver,
  readEverything,
  repeatWrites,
  type Caller,
  type Shop,
} from '../support/moved-shop.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

describe.skipIf(!hasPostgres)('latchkey store move', () => {
  let server: PostgresServer;
  let made = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  function urlOf(user = 'owner', password = 'secret'): string {
    const { host, port, database } = server.address;
    return `postgres://${user}:${password}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`;
  }

  /** An authority on one machine, with a configuration for each engine. */
  interface Machine extends AsyncDisposable {
    readonly directory: string;
    readonly stateDir: string;
    readonly schema: string;
    /** Runs the daemon during `work`. */
    during<Value>(store: 'sqlite' | 'postgres', work: (call: Caller) => Promise<Value>): Promise<Value>;
    move(...argv: string[]): Promise<Outcome>;
    query(text: string): Promise<readonly Record<string, unknown>[]>;
  }

  async function machine(settings: { url?: string; schema?: string } = {}): Promise<Machine> {
    const owned = new AsyncDisposableStack();
    const directory = owned.use(temporaryDirectory()).path;
    made += 1;
    const schema = settings.schema ?? `moved_${made}`;
    const stateDir = join(directory, 'state');
    const store = { postgres: { url: settings.url ?? urlOf(), schema, pool: 4 } };
    const config = join(directory, 'config.yaml');
    writeFileSync(config, JSON.stringify({ state_dir: stateDir, store }), { mode: 0o600 });
    const database = owned.use(new Database(server.settings({ schema })));
    return {
      directory,
      stateDir,
      schema,
      async during(engine, work) {
        const tree = {
          state_dir: stateDir,
          listen: { tcp: '127.0.0.1:0', socket: false as const },
          webhooks: { out: { allow: ['127.0.0.1'] } },
        };
        const configuration = embeddedConfiguration(engine === 'sqlite' ? tree : { ...tree, store });
        const daemon = await startDaemon(configuration, { log: silent });
        try {
          return await work(callerOf(daemon.addresses.tcp ?? '', stateDir));
        } finally {
          await daemon.stop();
        }
      },
      move: (...argv) => latchkey('store', 'move', '--config', config, ...argv),
      query: (text) => database.query(text),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  function callerOf(address: string, stateDir: string): Caller {
    return async (method, path, { body, key, headers } = {}) => {
      const token = readFileSync(join(stateDir, 'admin.token'), 'utf8').trim();
      const answer = await fetch(`${address}${path}`, {
        method,
        headers: {
          ...(headers ?? { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text };
    };
  }

  async function epochOf(call: Caller): Promise<string> {
    const { text } = await call('GET', '/sync/v1', {
      headers: { 'product-secret-key': 'the-secret-of-press' },
    });
    return (JSON.parse(text) as { data: { epoch: string } }).data.epoch;
  }

  /** Every file of a directory, byte for byte. */
  function bytesOf(directory: string): Record<string, string> {
    return Object.fromEntries(
      readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), 'base64')]),
    );
  }

  test('After a move, a node on PostgreSQL answers as the authority did on SQLite.', async () => {
    await using place = await machine();
    const { shop, before } = await place.during('sqlite', async (call) => {
      const made_: Shop = await createShop(call);
      storeActivations(place.stateDir, activationsOf(made_));
      return { shop: made_, before: await readEverything(call, made_) };
    });
    const source = bytesOf(place.stateDir);
    const moved = await place.move('--json');
    expect(moved).toMatchObject({ code: 0, err: '' });
    expect(bytesOf(place.stateDir)).toEqual(source);
    const { tables } = JSON.parse(moved.out) as { tables: Record<string, { rows: number; sha256: string }> };
    for (const [name, { rows, sha256 }] of Object.entries(tables)) {
      expect([name, rows > 0, sha256.length]).toEqual([name, true, 64]);
    }
    const after = await place.during('postgres', async (call) => {
      const everything = await readEverything(call, shop);
      expect(await repeatWrites(call, shop)).toEqual(shop.writes.map(({ answered }) => answered));
      expect(await readEverything(call, shop)).toEqual(everything);
      const coupon = await call('POST', '/api/v2/coupons', {
        body: { code: 'LATER', coupon_type: 'multi', amount_off: 5 },
      });
      expect(JSON.parse(coupon.text)).toMatchObject({ data: { id: shop.lastCouponId + 1 } });
      const used = await call('PUT', '/api/v2/license/usage', { body: { license_key: shop.licenseKeys[0] } });
      expect(used.status).toBe(200);
      return everything;
    });
    expect(Object.keys(after).length).toBeGreaterThan(100);
    expect(after).toEqual(before);
  });

  test('A move copies every table of an authority, except for tables that it rebuilds, and the counts of minutes.', async () => {
    await using place = await machine();
    await place.during('sqlite', async (call) => void (await createShop(call)));
    const moved = await place.move('--json');
    const { tables } = JSON.parse(moved.out) as { tables: object };
    const rows = await place.query(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '${place.schema}'`,
    );
    const derived = ['schema_version', 'coupon_number', 'series', 'sync_follow', 'license_change'];
    expect([...Object.keys(tables), ...derived].toSorted()).toEqual(
      rows.map(({ name }) => String(name)).toSorted(),
    );
    using source = new DatabaseSync(join(place.stateDir, 'latchkey.db'), { readOnly: true });
    const columns = (await place.query(
      `SELECT table_name AS name, string_agg(column_name, ' ' ORDER BY column_name) AS columns
       FROM information_schema.columns WHERE table_schema = '${place.schema}' GROUP BY 1`,
    )) as { name: string; columns: string }[];
    for (const { name, columns: names } of columns.filter((each) => each.name in tables)) {
      const here = source.prepare(`SELECT name FROM pragma_table_info(?)`).all(name);
      const expected = [
        ...here.map((column) => String(column['name'])),
        ...(name === 'license' ? ['changes'] : []),
      ];
      expect([name, names]).toEqual([name, expected.toSorted().join(' ')]);
    }
  });

  test('After a move, the changes of agents that are repeated are not carried out again.', async () => {
    await using place = await machine();
    const { shop, was } = await place.during('sqlite', async (call) => {
      const made_ = await createShop(call);
      return { shop: made_, was: await epochOf(call) };
    });
    expect(await place.move()).toMatchObject({ code: 0 });
    await place.during('postgres', async (call) => {
      // The same store in another history: agents go on, and follow their keys anew.
      const epoch = await epochOf(call);
      expect(storeOf(epoch)).toBe(storeOf(was));
      expect(epoch).not.toBe(was);
      const before = await readEverything(call, shop);
      expect(await deliver(call, shop.licenseKeys)).toEqual(shop.delivered);
      expect(await readEverything(call, shop)).toEqual(before);
    });
  });

  test('A backup can be moved while the daemon runs, and becomes a new instance.', async () => {
    await using place = await machine();
    const backup = join(place.directory, 'backup.db');
    const instance = await place.during('sqlite', async (call) => {
      await createShop(call);
      const health = await call('GET', '/livez');
      backUp(join(place.stateDir, 'latchkey.db'), backup);
      const bytes = readFileSync(backup);
      const moved = await place.move('--from', backup);
      expect(moved).toMatchObject({ code: 0, err: '' });
      expect(moved.out).toContain('The backup was not changed.');
      expect(readFileSync(backup).equals(bytes)).toBe(true);
      return health.headers.get('latchkey-instance');
    });
    await place.during('postgres', async (call) => {
      const own = (await call('GET', '/livez')).headers.get('latchkey-instance');
      expect(own).not.toBe(instance);
    });
  });

  test('A start on the database is refused until the records in the state directory were moved.', async () => {
    await using place = await machine();
    const health = (call: Caller) => call('GET', '/livez');
    await place.during('sqlite', async (call) => void (await createShop(call)));
    const source = bytesOf(place.stateDir)['latchkey.db'];
    const left = `the records of the authority are in ${place.stateDir}/latchkey.db, and none of them in the database`;
    const refused = async (): Promise<void> => {
      await expect(place.during('postgres', health)).rejects.toThrow(
        `The database is refused: ${left}: move them with latchkey store move, or move that file away to start with an empty store.`,
      );
      for (const words of [['doctor'], ['config', 'check', '--connect']]) {
        const config = join(place.directory, 'config.yaml');
        const { code, out } = await latchkey(...words, '--config', config);
        expect([code, out.replaceAll(/ {2,}/g, ' ')]).toEqual([
          1,
          expect.stringContaining(`fail ${left} → move them with latchkey store move`),
        ]);
      }
      expect(bytesOf(place.stateDir)['latchkey.db'] === source).toBe(true);
    };
    await refused();

    // Another node without records may have started first.
    await using other = await machine({ schema: place.schema });
    await other.during('postgres', health);
    await refused();
    await place.query(`DROP SCHEMA ${place.schema} CASCADE`);

    expect((await place.move()).code).toBe(0);
    await place.during('postgres', async (call) => {
      expect((await call('GET', '/admin/v1/products')).text).toContain('"press"');
    });
    // After a dump was restored, the instance is another one, and the file may still exist.
    await place.query(`DELETE FROM ${place.schema}.setting WHERE name = 'instance'`);
    await place.during('postgres', health);
  });

  test('A start on the database with the state directory of an agent is refused, because its outbox would never be sent.', async () => {
    await using place = await machine();
    await place.during('sqlite', async () => undefined);
    {
      using store = new DatabaseSync(join(place.stateDir, 'latchkey.db'));
      store.exec("UPDATE setting SET value = 'agent' WHERE name = 'role'");
    }
    await expect(place.during('postgres', async () => undefined)).rejects.toThrow(
      `${place.stateDir}/latchkey.db is an agent's, and the configuration has no upstream: put the upstream back`,
    );
  });

  test('A SQLite file that was moved, or has no records, does not prevent a start on the database.', async () => {
    await using place = await machine();
    await place.during('sqlite', async () => undefined);
    await place.during('postgres', async (call) => {
      expect((await call('GET', '/livez')).status).toBe(200);
    });
    await using emptied = await machine();
    const body = { scopes: ['ops'], label: 'prometheus' };
    await emptied.during('sqlite', async (call) => void (await call('POST', '/admin/v1/tokens', { body })));
    expect((await emptied.move()).code).toBe(0);
    await emptied.during('postgres', async (call) => {
      const { text } = await call('GET', '/admin/v1/tokens');
      expect(text).toContain('prometheus');
    });
  });

  test('A move with --to-file prints which configuration the node needs.', async () => {
    await using place = await machine();
    await place.during('sqlite', async (call) => void (await createShop(call)));
    const [url, config] = [join(place.directory, 'url'), join(place.directory, 'config.yaml')];
    writeFileSync(url, urlOf(), { mode: 0o600 });
    const last = ({ out }: Outcome) => out.trimEnd().split('\n').at(-1);
    const advice = 'Start a node of the authority there';
    const without = ['--state-dir', place.stateDir, '--to-file', url];
    expect(last(await latchkey('store', 'move', ...without))).toBe(
      `${advice} with store.postgres.url_file ${url} in the configuration: latchkey --config FILE --state-dir ${place.stateDir} serve`,
    );
    const moved = await place.move();
    expect(last(moved)).toBe(`${advice}: latchkey --config ${config} serve`);
    expect(moved.out.split('\n').slice(0, 3)).toEqual([
      expect.stringMatching(/^.* is moved to the schema \w+, as the instance [0-9a-f-]{36}\.$/),
      expect.stringMatching(/^Read back, and equal by count and SHA-256: \d+ account, .*\d+ product/),
      'The old state was not changed. Archive it; do not start it again.',
    ]);
  });

  test('A move includes the last writes of a killed daemon.', async () => {
    await using place = await machine();
    await place.during('sqlite', async (call) => {
      await createShop(call);
      const killed = join(place.directory, 'killed');
      cpSync(place.stateDir, killed, { recursive: true });
      expect(readdirSync(killed)).toContain('latchkey.db-wal');
      const moved = await place.move('--state-dir', killed, '--json');
      expect(moved).toMatchObject({ code: 0, err: '' });
      expect(JSON.parse(moved.out)).toMatchObject({
        tables: { audit_event: { rows: expect.any(Number) as number } },
      });
    });
    expect(await place.query(`SELECT count(*) AS count FROM "${place.schema}".license`)).not.toEqual([
      { count: 0 },
    ]);
  });

  test('A move that cannot start prints one line and changes nothing.', async () => {
    await using place = await machine();
    await using owner = new Database(server.settings());
    await owner.query(`CREATE ROLE visitor LOGIN PASSWORD 'secret'`);
    await owner.query('CREATE SCHEMA till');
    await owner.query('CREATE TABLE till.cart (id bigint)');
    const refused = async (outcome: Promise<Outcome>, text: string, code = 1): Promise<void> => {
      const { err, out, code: found } = await outcome;
      expect({ err, out, code: found }).toEqual({
        err: expect.stringContaining(text) as string,
        out: '',
        code,
      });
      expect(err.replace('Nothing was changed.\n', '').trimEnd().split('\n')).toHaveLength(1);
    };
    await refused(place.move(), 'latchkey.db is refused: there is no such file.');
    await place.during('sqlite', async (call) => {
      await createShop(call);
      await refused(place.move(), 'Another process is using the state directory');
    });
    const source = bytesOf(place.stateDir);
    const file = (name: string, text: string): string => {
      writeFileSync(join(place.directory, name), text, { mode: 0o600 });
      return join(place.directory, name);
    };
    await refused(place.move('--from', file('text', 'no database')), 'it is not an SQLite database.');
    const newer = file('newer.db', '');
    writeFileSync(newer, readFileSync(join(place.stateDir, 'latchkey.db')));
    changeDatabase(newer, 'PRAGMA user_version = 99');
    await refused(place.move('--from', newer), 'a newer Latchkey wrote it (schema 99');
    const agents = file('agent.db', '');
    writeFileSync(agents, readFileSync(join(place.stateDir, 'latchkey.db')));
    changeDatabase(agents, `UPDATE setting SET value = 'agent' WHERE name = 'role'`);
    await refused(place.move('--from', agents), "it is an agent's");

    await using guest = await machine({ url: urlOf('visitor') });
    cpSync(place.stateDir, guest.stateDir, { recursive: true });
    await refused(guest.move(), 'its role has no right to make or use the schema');
    await using stranger = await machine({ url: urlOf('owner', 'wrong') });
    cpSync(place.stateDir, stranger.stateDir, { recursive: true });
    await refused(stranger.move(), 'password authentication failed for user "owner"', 78);
    await using till = await machine({ schema: 'till' });
    cpSync(place.stateDir, till.stateDir, { recursive: true });
    await refused(till.move(), 'the schema "till" holds something else', 78);
    const nobody = file('nobody', 'postgres://owner:secret@127.0.0.1:1/postgres?sslmode=disable');
    await using away = await machine();
    writeFileSync(join(away.directory, 'config.yaml'), JSON.stringify({ state_dir: place.stateDir }));
    await refused(away.move(), 'store.postgres: is missing', 78);
    await refused(away.move('--to-file', nobody), '127.0.0.1:1 cannot be used: connect ECONNREFUSED');
    await refused(away.move('--to-file', file('nonsense', 'db.example')), 'must be postgres://', 78);
    expect(bytesOf(place.stateDir)).toEqual(source);

    expect((await place.move()).code).toBe(0);
    await refused(place.move(), `an authority is in the schema "${place.schema}" already`, 78);
  });

  test.each([
    [
      'the database stores other values than were sent',
      'NEW.uses := NEW.uses + 1',
      /The copy of the table license/,
    ],
    [
      'the connection is lost',
      'PERFORM pg_terminate_backend(pg_backend_pid())',
      /The database at .* cannot be used: /,
    ],
  ])(
    'A failed move leaves nothing in the database if %s, and the next move succeeds.',
    async (_, act, complaint) => {
      await using place = await machine();
      await place.during('sqlite', async (call) => void (await createShop(call)));
      await using owner = new Database(server.settings());
      // The trigger runs for each stored license.
      await owner.query(`CREATE OR REPLACE FUNCTION act_on_row() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN ${act}; RETURN NEW; END$$`);
      await owner.query(`CREATE OR REPLACE FUNCTION act() RETURNS event_trigger LANGUAGE plpgsql AS $$
      DECLARE made record;
      BEGIN
        FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
          IF made.object_identity = '${place.schema}.license' THEN
            CREATE OR REPLACE TRIGGER acting BEFORE INSERT ON ${place.schema}.license
              FOR EACH ROW EXECUTE FUNCTION public.act_on_row();
          END IF;
        END LOOP;
      END$$`);
      await owner.query(
        `CREATE EVENT TRIGGER acting ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION act()`,
      );
      try {
        const { code, err } = await place.move();
        expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(complaint) as string });
        expect(await owner.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${place.schema}'`)).toEqual([]);
      } finally {
        await owner.query('DROP EVENT TRIGGER acting');
      }
      expect((await place.move()).code).toBe(0);
    },
  );
});

function changeDatabase(path: string, sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}
