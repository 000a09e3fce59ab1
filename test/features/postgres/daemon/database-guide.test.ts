import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startDaemon } from '../../../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../../../src/config/load.ts';
import { nodeNameOf } from '../../../../src/features/postgres/daemon/shared-store.ts';
import { blocksOf, chapterOf, commandsIn, readExample, wordsOf } from '../../../support/reference/guides.ts';
import { latchkey } from '../../../support/process/command-line.ts';
import { hasPostgres, postgresProgram, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const run = promisify(execFile);
const guide = readExample('guides/nodes.md');

describe.skipIf(!hasPostgres)('The guide for several nodes', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  /** Runs a program of PostgreSQL as the operator of the server. */
  async function operate(program: string, argv: readonly string[], directory: string): Promise<string> {
    const { host, port } = server.address;
    const env = {
      PATH: process.env['PATH'],
      PGHOST: host,
      PGPORT: String(port),
      PGUSER: 'owner',
      PGPASSWORD: 'secret',
    };
    const { stdout } = await run(postgresProgram(program), argv, { env, cwd: directory });
    return stdout;
  }

  /** The URL of the guide's role on this server. */
  function urlOfRole(): string {
    const { host, port } = server.address;
    return `postgres://latchkey:the-password-of-the-role@localhost:${port}/licenses?host=${encodeURIComponent(host)}`;
  }

  test('The commands of the guide create the role, move the records, start two nodes, and dump and restore the schema.', async () => {
    await using owned = temporaryDirectory();
    const directory = owned.path;
    writeFileSync(join(directory, 'role.sql'), readExample('nodes/role.sql'));
    await operate('psql', ['--file', 'role.sql', '--set', 'ON_ERROR_STOP=1', 'postgres'], directory);
    writeFileSync(join(directory, 'url'), urlOfRole(), { mode: 0o600 });

    const [text = ''] = blocksOf(chapterOf(guide, 'Move what there is'), 'yaml');
    const stateDir = join(directory, 'state');
    const example = parse(text) as { listen: object; store: { postgres: object } };
    const common = {
      state_dir: stateDir,
      listen: { ...example.listen, tcp: '127.0.0.1:0', drain_delay: '0s' },
    };
    const config = join(directory, 'config.yaml');
    const store = { postgres: { url_file: join(directory, 'url') } };
    writeFileSync(config, JSON.stringify({ ...common, store }), { mode: 0o600 });
    expect(Object.keys(example.store.postgres)).toEqual(Object.keys(store.postgres));

    const onSqlite = embeddedConfiguration(common);
    const apiKey = await during(onSqlite, async (address) => {
      const { status } = await call(address, stateDir, '/admin/v1/products', {
        name: 'Press',
        product_key: 'press',
      });
      expect(status).toBe(201);
      return readFileSync(join(stateDir, 'api.key'), 'utf8').trim();
    });
    expect(await latchkey('store', 'move', '--config', config)).toMatchObject({ code: 0, err: '' });
    // Moved away, as the guide says: a node does not read the file.
    renameSync(join(stateDir, 'latchkey.db'), join(directory, 'latchkey.db'));
    const node = embeddedConfiguration({ ...common, store: { postgres: { url: urlOfRole() } } });
    const other = join(directory, 'other');
    mkdirSync(other, { mode: 0o700 });
    const second = embeddedConfiguration({
      ...common,
      state_dir: other,
      store: { postgres: { url: urlOfRole() } },
    });
    const sell = async (address: string, at: string): Promise<unknown> => {
      const sale = { product_key: 'press', buyer_email: 'a@example.com' };
      return (await call(address, at, '/admin/v1/purchases', sale)).status;
    };
    const instance = await during(node, async (address) => {
      expect(await sell(address, stateDir)).toBe(201);
      const coupons = await fetch(`${address}/api/v2/coupons`, { headers: { 'service-api-key': apiKey } });
      expect(coupons.status).toBe(200);
      return await instanceAt(address);
    });
    await during(second, async (address) => {
      expect(await sell(address, other)).toBe(201);
      expect(await instanceAt(address)).toBe(instance);
    });

    const lines = commandsIn(chapterOf(guide, 'Back up')).map(wordsOf);
    const [dump, ...rest] = lines.filter(([program]) => program !== 'systemctl');
    await operate(dump?.[0] ?? '', dump?.slice(1) ?? [], directory);
    await operate('psql', ['--dbname=licenses', '--command=DROP SCHEMA latchkey CASCADE'], directory);
    for (const [program = '', ...argv] of rest) {
      await operate(program, argv, directory);
    }
    await during(node, async (address) => {
      expect(await sell(address, stateDir)).toBe(201);
      expect(await instanceAt(address)).not.toBe(instance);
      const { body } = await call(address, stateDir, '/admin/v1/purchases');
      expect((body as { data: { purchases: unknown[] } }).data.purchases).toHaveLength(3);
    });
  });
});

test('Two nodes in containers with the same paths have different names, because their hosts differ.', async () => {
  await using directory = temporaryDirectory();
  expect(nodeNameOf(directory.path, 'one')).toBe(nodeNameOf(directory.path, 'one'));
  expect(nodeNameOf(directory.path, 'one')).not.toBe(nodeNameOf(directory.path, 'two'));
});

async function during<Value>(
  configuration: Parameters<typeof startDaemon>[0],
  work: (address: string) => Promise<Value>,
): Promise<Value> {
  const daemon = await startDaemon(configuration, { log: silent });
  try {
    return await work(daemon.addresses.tcp ?? '');
  } finally {
    await daemon.stop();
  }
}

async function call(
  address: string,
  stateDir: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  const token = readFileSync(join(stateDir, 'admin.token'), 'utf8').trim();
  const answer = await fetch(`${address}${path}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: await answer.json() };
}

async function instanceAt(address: string): Promise<string | null> {
  return (await fetch(`${address}/livez`)).headers.get('latchkey-instance');
}
