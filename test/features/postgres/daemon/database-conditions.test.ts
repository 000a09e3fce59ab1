import { chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { machineTime } from '../../../../src/daemon/system/clock.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import {
  latchkeySchemas,
  migrate,
  newestSchema,
} from '../../../../src/features/postgres/store/migrations.ts';
import { urlByPort, watchNode, type WatchedNode } from '../support/watched-node.ts';
import { startFaultProxy } from '../../../support/network/fault-proxy.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { canMount, smallDisk } from '../../../support/process/small-disk.ts';
import { patience } from '../../../support/patience.ts';

const well = {
  ready: [200],
  alive: 200,
  storage: 'ok',
  verify: [404, 'license_not_found'],
  sale: 201,
};
const refused = [503, 'storage_unavailable'];
/** `expect.poll` does not know its test if several tests run at once. */

/** Waits until a node reports a state of its database, and returns its responses. */
async function answersIn(node: WatchedNode, storage: string): Promise<unknown> {
  const look = async (): Promise<void> =>
    expect(await (await node.call('/statusz')).json()).toMatchObject({ storage });
  await vi.waitFor(look, patience);
  return await node.answers();
}

/** The logged lines about the database, in order. */
function logged({ lines }: WatchedNode): unknown[] {
  return lines
    .filter(({ message }) => message.includes('the database'))
    .map(({ level, message }) => `${level}: ${message}`);
}

describe.skipIf(!hasPostgres)('The database of a node', () => {
  let server: PostgresServer;
  let made = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });
  const newSchema = (): string => {
    made += 1;
    return `conditions_${made}`;
  };

  test('When its database stops, a node logs one line and refuses requests, and it recovers by itself.', async () => {
    await using node = await watchNode(server.address, { schema: newSchema() });
    expect(await answersIn(node, 'ok')).toEqual(well);
    await server.stop('immediate');
    try {
      expect(await answersIn(node, 'unavailable')).toEqual({
        ready: [503, 'storage_unavailable'],
        alive: 200,
        storage: 'unavailable',
        verify: refused,
        sale: refused,
      });
    } finally {
      await server.start();
    }
    expect(await answersIn(node, 'ok')).toEqual(well);
    expect(logged(node)).toEqual([
      'error: the database is unavailable: requests are refused until it is available again',
      'info: the database is available again',
    ]);
    expect(JSON.stringify(node.lines)).not.toContain('secret');
  });

  // Each of these tests waits for the deadlines of its requests.
  test.concurrent.each([
    ['that does not answer', { kind: 'blackhole' }],
    ['that answers late', { kind: 'latency', delayMs: 1_300 }],
  ] as const)(
    'A node reports a database %s as slow, and recovers when the database answers in time.',
    async (_, fault) => {
      await using proxy = await startFaultProxy(server.address.port);
      const url = urlByPort(server.address, proxy.port);
      const hasty = { url, schema: newSchema(), statement_timeout: '1s' };
      await using node = await watchNode(server.address, hasty, machineTime);
      // The deadlines are seconds, which a slow machine may exceed without a fault.
      await vi.waitFor(async () => expect(await node.answers()).toEqual(well), patience);
      await proxy.become(fault);
      expect(await answersIn(node, 'slow')).toEqual({
        ready: [503, 'storage_slow'],
        alive: 200,
        storage: 'slow',
        verify: refused,
        sale: refused,
      });
      proxy.resetAll();
      await proxy.become({ kind: 'pass' });
      expect(await answersIn(node, 'ok')).toEqual(well);
      expect(logged(node)[0]).toBe(
        'error: the database is slow: requests may be refused until it answers in time',
      );
      expect(logged(node).at(-1)).toBe('info: the database is available again');
    },
  );

  test('With a read-only database a node answers verifies and refuses changes, and it recovers by itself.', async () => {
    const schema = newSchema();
    await using node = await watchNode(server.address, { schema });
    await using owner = new Database(server.settings());
    const become = async (isReadOnly: boolean): Promise<void> => {
      await owner.query(`ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
      await owner.query('SELECT pg_reload_conf()');
    };
    await become(true);
    try {
      expect(await answersIn(node, 'read_only')).toEqual({
        ...well,
        ready: [200, 'storage_read_only'],
        storage: 'read_only',
        sale: refused,
      });
    } finally {
      await become(false);
    }
    expect(await answersIn(node, 'ok')).toEqual(well);
    expect(logged(node)).toEqual([
      'error: the database is read-only: changes are refused until it accepts writes',
      'info: the database is available again',
    ]);
  });

  test('A node refuses every request while the schema of its database is too new.', async () => {
    const schema = newSchema();
    await using node = await watchNode(server.address, { schema });
    await using newer = new Database(server.settings({ schema }));
    await migrate(newer, [
      ...latchkeySchemas(),
      { sql: 'CREATE TABLE latchkey.later (id bigint)', minimum: 1 },
    ]);
    expect(await answersIn(node, 'ok')).toEqual(well);
    const minimum = newestSchema + 1;
    await migrate(newer, [
      ...latchkeySchemas(),
      { sql: '', minimum: 1 },
      { sql: 'DROP TABLE latchkey.later', minimum },
    ]);
    expect(await answersIn(node, 'refused')).toEqual({
      ready: [503, 'storage_refused'],
      alive: 200,
      storage: 'refused',
      verify: refused,
      sale: refused,
    });
    expect(node.lines.findLast(({ level }) => level === 'error')?.fields['error']).toContain(
      'a newer Latchkey wrote it',
    );
    await newer.query(`UPDATE ${newer.names.of('schema_version')} SET minimum = 1`);
    expect(await answersIn(node, 'ok')).toEqual(well);
    expect(logged(node)).toEqual([
      'error: this node cannot use the database: requests are refused until that is corrected',
      'info: the database is available again',
    ]);
  });

  test.each([
    ['of a version that is too old', 'older', 'it is PostgreSQL 14; 15 or later is needed'],
    ['that has revoked a privilege of its role', 'revoked', 'its role may not write product'],
  ])('A node refuses every request while it has a database %s.', async (_, user, reason) => {
    await using owner = new Database(server.settings());
    await owner.query(`CREATE ROLE ${user} LOGIN PASSWORD 'secret'`);
    await owner.query(`CREATE SCHEMA ${user} AUTHORIZATION ${user}`);
    // Sessions of the role find this schema's current_setting first.
    await owner.query(`ALTER ROLE ${user} SET search_path = ${user}, pg_catalog`);
    await using node = await watchNode({ ...server.address, user }, { schema: user });
    expect(await answersIn(node, 'ok')).toEqual(well);
    if (user === 'older') {
      await owner.query(`CREATE FUNCTION older.current_setting(name text) RETURNS text LANGUAGE sql AS
        $$SELECT CASE name WHEN 'server_version_num' THEN '140012' ELSE pg_catalog.current_setting(name) END$$`);
      await owner.query(`GRANT EXECUTE ON FUNCTION older.current_setting TO older`);
    } else {
      await owner.query(`REVOKE INSERT ON revoked.product FROM revoked`);
    }
    expect(await answersIn(node, 'refused')).toEqual({
      ready: [503, 'storage_refused'],
      alive: 200,
      storage: 'refused',
      verify: refused,
      sale: refused,
    });
    expect(node.lines.findLast(({ level }) => level === 'error')?.fields['error']).toContain(reason);
    if (user === 'older') await owner.query('DROP FUNCTION older.current_setting');
    else await owner.query('GRANT INSERT ON revoked.product TO revoked');
    expect(await answersIn(node, 'ok')).toEqual(well);
    expect(logged(node)).toHaveLength(2);
  });

  test.skipIf(!canMount)(
    'While the disk of its database is full, a node answers verifies and refuses changes.',
    async () => {
      await using disk = smallDisk(96 * 1024);
      for (const path of [dirname(disk.path), disk.path]) chmodSync(path, 0o755);
      await using small = await startPostgres({ below: disk.path });
      await using node = await watchNode(small.address, { schema: 'latchkey' });
      disk.fill(0);
      try {
        await expect.poll(async () => (await node.answers()).sale).toEqual([507, 'storage_full']);
        expect(await answersIn(node, 'full')).toEqual({
          ...well,
          ready: [200, 'storage_full'],
          storage: 'full',
          sale: [507, 'storage_full'],
        });
      } finally {
        disk.clear();
      }
      expect(await answersIn(node, 'ok')).toEqual(well);
      expect(logged(node)).toEqual([
        'error: the disk of the database is full: changes are refused until there is free space',
        'info: the database is available again',
      ]);
    },
  );
});
