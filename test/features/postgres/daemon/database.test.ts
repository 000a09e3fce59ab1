import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logApiKey } from '../../../../src/features/postgres/daemon/shared-store.ts';
import type { Log } from '../../../../src/service/ports.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { advisory } from '../../../../src/features/postgres/store/locks.ts';
import { sellOne, startNode, type AuthorityNode } from '../support/nodes.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { urlOf } from '../support/postgres-url.ts';
import { silent } from '../../../support/silent-log.ts';

describe.skipIf(!hasPostgres)('Nodes of an authority on one PostgreSQL', () => {
  let server: PostgresServer;
  let made = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  async function nodeOn(schema: string, postgres: object = {}): Promise<AuthorityNode> {
    return await startNode(server, { schema, ...postgres });
  }

  function newSchema(): string {
    made += 1;
    return `nodes_${made}`;
  }

  test('Two nodes serve the same data, and repeat the responses of one another under an idempotency key.', async () => {
    const schema = newSchema();
    await using one = await nodeOn(schema);
    await using other = await nodeOn(schema);
    const licenseKey = await sellOne(one);
    expect(licenseKey).toMatch(/^[0-9A-Z-]+$/i);
    const used = await other.call('/api/v2/license/usage', {
      method: 'PUT',
      body: { license_key: licenseKey },
      key: 'once',
    });
    expect(used.status).toBe(200);
    const usedAgain = await one.call('/api/v2/license/usage', {
      method: 'PUT',
      body: { license_key: licenseKey },
      key: 'once',
    });
    expect(await usedAgain.json()).toEqual(await used.json());
    const verified = await one.call(`/api/v2/license/verify?license_key=${licenseKey}`);
    expect(await verified.json()).toMatchObject({ data: { uses: 1, license_key: licenseKey } });
    const instances = [one, other].map(async (node) =>
      (await node.call('/healthz')).headers.get('latchkey-instance'),
    );
    expect(new Set(await Promise.all(instances)).size).toBe(1);
    const backup = await other.call('/admin/v1/backup');
    expect([backup.status, await backup.json()]).toMatchObject([
      409,
      { type: 'urn:latchkey:problem:backed_up_by_the_database' },
    ]);
    expect((await other.call('/statusz')).status).toBe(200);
    expect((await other.call('/metrics')).status).toBe(200);
  });

  test('A node can revoke the admin token of a removed node, but not the token in its own admin.token.', async () => {
    const schema = newSchema();
    await using one = await nodeOn(schema);
    const list = async (): Promise<string[]> => {
      const listed = await (await one.call('/admin/v1/tokens')).json();
      return (listed as { data: { tokens: { token_id: string }[] } }).data.tokens.map(
        (each) => each.token_id,
      );
    };
    const [own = ''] = await list();
    {
      await using _ = await nodeOn(schema);
    }
    const gone = (await list()).find((id) => id !== own) ?? '';
    const revoke = (id: string): Promise<Response> =>
      one.call(`/admin/v1/tokens/${id}`, { method: 'DELETE' });
    const refused = await revoke(own);
    expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'token_of_the_file' }]);
    expect((await revoke(gone)).status).toBe(200);
    expect(await list()).toEqual([own]);
  });

  test('Nodes that start together on an empty database create one API key, and all other nodes log where it is.', async () => {
    const schema = newSchema();
    const infos: { message: string; at: unknown }[] = [];
    const log: Log = { ...silent, info: ({ at }, message) => infos.push({ message, at }) };
    const starts = Array.from({ length: 6 }, () => startNode(server, { schema }, { log }));
    await using started = new AsyncDisposableStack();
    const nodes = (await Promise.all(starts)).map((node) => started.use(node));
    const [maker, ...more] = nodes.filter(({ apiKey }) => apiKey !== null);
    expect(more).toEqual([]);
    const headers = { 'service-api-key': maker?.apiKey ?? '' };
    for (const node of nodes) expect((await node.call('/api/v2/coupons', { headers })).status).toBe(200);
    const logged = infos.filter(({ message }) => message === 'the first API key was written by another node');
    expect(logged.map(({ at }) => at)).toEqual(
      Array.from({ length: 5 }, () => `${hostname()}:${join(maker?.stateDir ?? '', 'api.key')}`),
    );
  });

  test('A node warns of a key in api.key that matches no account.', async () => {
    const schema = newSchema();
    await using node = await nodeOn(schema);
    await using database = new Database(server.settings({ schema }));
    const warnings: string[] = [];
    const warn: Log['warn'] = ({ hint }, message) => void warnings.push(`${message}: ${String(hint)}`);
    const warnOfKey = () => logApiKey(node.stateDir, database.reader, { ...silent, warn });
    await warnOfKey();
    expect(warnings).toEqual([]);
    writeFileSync(join(node.stateDir, 'api.key'), 'rotated-at-another-node\n', { mode: 0o600 });
    await warnOfKey();
    expect(warnings).toEqual([
      'the key in api.key matches no account: the key was rotated, or another node created the first account: write the current key into api.key',
    ]);
  });

  test('A node starts even if another node holds the start lock for longer than the lock timeout.', async () => {
    const schema = newSchema();
    // Its transaction is idle for longer than the usual settings allow.
    await using database = new Database(server.settings({ schema, statementTimeoutMs: 60_000 }));
    const waits = Promise.withResolvers<void>();
    const log: Log = {
      ...silent,
      warn: (_, message) => message.includes('waiting for it') && waits.resolve(),
    };
    const starting = database.lend(async (connection) => {
      await connection.begin(null, [{ statement: advisory(database.names, 'start'), values: [] }]);
      const node = startNode(server, { schema, statement_timeout: '2s' }, { log });
      await Promise.race([waits.promise, node]);
      await connection.rollback();
      return { node };
    });
    await using node = await (await starting).node;
    expect((await node.call('/readyz')).status).toBe(200);
  });

  test('A request of an admin under one idempotency key is executed once, even if two nodes get it with different admin tokens.', async () => {
    const schema = newSchema();
    await using one = await nodeOn(schema);
    await using other = await nodeOn(schema);
    expect(one.adminToken).not.toBe(other.adminToken);
    await sellOne(one);
    const sale = { body: { product_key: 'press', buyer_email: 'b@example.com' }, key: 'once' };
    const first = await one.call('/admin/v1/purchases', sale);
    const again = await other.call('/admin/v1/purchases', sale);
    expect([again.status, await again.json()]).toEqual([first.status, await first.json()]);
  });

  test('Without its database a node is alive but not ready, and it recovers by itself.', async () => {
    await using node = await nodeOn(newSchema());
    const licenseKey = await sellOne(node);
    const until = async (status: number): Promise<void> => {
      await expect.poll(async () => (await node.call('/readyz')).status).toBe(status);
    };
    await until(200);
    await server.stop('immediate');
    try {
      await until(503);
      expect(await (await node.call('/readyz')).json()).toMatchObject({ reasons: ['storage_unavailable'] });
      expect((await node.call('/livez')).status).toBe(200);
      const verified = await node.call(`/api/v2/license/verify?license_key=${licenseKey}`);
      expect([verified.status, await verified.json()]).toMatchObject([
        503,
        { type: 'urn:latchkey:problem:storage_unavailable' },
      ]);
    } finally {
      await server.start();
    }
    await until(200);
    expect((await node.call(`/api/v2/license/verify?license_key=${licenseKey}`)).status).toBe(200);
  });

  test('A node does not start with a wrong password, in a schema of another program, or without privileges.', async () => {
    await using owner = new Database(server.settings());
    await owner.query('CREATE SCHEMA shop');
    await owner.query('CREATE TABLE shop.cart (id bigint)');
    await owner.query(`CREATE ROLE guest LOGIN PASSWORD 'secret'`);
    await expect(
      nodeOn('latchkey', { url: urlOf(server.address, { password: 'wrong' }) }),
    ).rejects.toMatchObject({
      name: 'PostgresRefused',
      message: expect.stringContaining('password authentication failed for user "owner"') as string,
    });
    await expect(nodeOn('shop')).rejects.toThrow('the schema "shop" holds something else');
    await expect(nodeOn('guests', { url: urlOf(server.address, { user: 'guest' }) })).rejects.toThrow(
      'no right to make or use the schema "guests"',
    );
  });
});
