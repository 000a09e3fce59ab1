import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../src/daemon/trial/embedded-configuration.ts';
import { Database } from '../../src/store/postgres/database.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { urlOf } from '../support/postgres-url.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** One copy of the authority, and how its callers see it. */
interface Copy extends AsyncDisposable {
  readonly stateDir: string;
  call(
    path: string,
    options?: { token?: string; isPut?: boolean; body?: object; key?: string },
  ): Promise<Response>;
}

describe.skipIf(!hasPostgres)('copies of an authority on one PostgreSQL', () => {
  let server: PostgresServer;
  let made = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  async function copyOn(schema: string, postgres: object = {}): Promise<Copy> {
    await using starting = new AsyncDisposableStack();
    const stateDir = join(starting.use(temporaryDirectory()).path, 'state');
    const configuration = embeddedConfiguration({
      state_dir: stateDir,
      listen: { tcp: '127.0.0.1:0' },
      store: {
        postgres: { url: urlOf(server.address), schema, pool: 4, statement_timeout: '1s', ...postgres },
      },
    });
    const daemon: Daemon = await startDaemon(configuration, { log: silent });
    starting.defer(() => daemon.stop());
    const owned = starting.move();
    const admin = (): string => readFileSync(join(stateDir, 'admin.token'), 'utf8').trim();
    return {
      stateDir,
      async call(path, { token = admin(), body, key, isPut = false } = {}) {
        const headers = {
          authorization: `Bearer ${token}`,
          ...(key !== undefined && { 'idempotency-key': key }),
        };
        const url = `${daemon.addresses.tcp}${path}`;
        if (body === undefined) return await fetch(url, { headers });
        const json = { ...headers, 'content-type': 'application/json' };
        return await fetch(url, {
          method: isPut ? 'PUT' : 'POST',
          headers: json,
          body: JSON.stringify(body),
        });
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  function newSchema(): string {
    made += 1;
    return `copies_${made}`;
  }

  async function sell(copy: Copy): Promise<string> {
    await copy.call('/admin/v1/products', { body: { name: 'Press', product_key: 'press' } });
    const sold = await copy.call('/admin/v1/purchases', {
      body: { product_key: 'press', buyer_email: 'a@example.com' },
    });
    const answered = (await sold.json()) as { data: { license: { license_key: string } } };
    return answered.data.license.license_key;
  }

  test('answer for one another, each with an admin token of its own', async () => {
    const schema = newSchema();
    await using one = await copyOn(schema);
    await using other = await copyOn(schema);
    const licenseKey = await sell(one);
    expect(licenseKey).toMatch(/^[0-9A-Z-]+$/i);
    const used = await other.call('/api/v2/license/usage', {
      isPut: true,
      body: { license_key: licenseKey },
      key: 'once',
    });
    expect(used.status).toBe(200);
    const verified = await one.call(`/api/v2/license/verify?license_key=${licenseKey}`);
    expect(await verified.json()).toMatchObject({ data: { uses: 1, license_key: licenseKey } });
    const instances = [one, other].map(async (copy) =>
      (await copy.call('/healthz')).headers.get('latchkey-instance'),
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

  test('stop taking requests while the database is away, live on, and go on when it is back', async () => {
    await using copy = await copyOn(newSchema());
    const licenseKey = await sell(copy);
    const until = async (status: number): Promise<void> => {
      await expect.poll(async () => (await copy.call('/readyz')).status, { timeout: 20_000 }).toBe(status);
    };
    await until(200);
    await server.stop('immediate');
    try {
      await until(503);
      expect(await (await copy.call('/readyz')).json()).toMatchObject({ reasons: ['storage_unavailable'] });
      expect((await copy.call('/livez')).status).toBe(200);
      const verified = await copy.call(`/api/v2/license/verify?license_key=${licenseKey}`);
      expect([verified.status, await verified.json()]).toMatchObject([
        503,
        { type: 'urn:latchkey:problem:storage_unavailable' },
      ]);
    } finally {
      await server.start();
    }
    await until(200);
    expect((await copy.call(`/api/v2/license/verify?license_key=${licenseKey}`)).status).toBe(200);
  });

  test('do not start with a wrong password, a schema of something else, or without rights', async () => {
    await using owner = new Database(server.settings());
    await owner.query('CREATE SCHEMA shop');
    await owner.query('CREATE TABLE shop.cart (id bigint)');
    await owner.query(`CREATE ROLE guest LOGIN PASSWORD 'secret'`);
    await expect(
      copyOn('latchkey', { url: urlOf(server.address, { password: 'wrong' }) }),
    ).rejects.toMatchObject({
      name: 'PostgresRefused',
      message: expect.stringContaining('password authentication failed for user "owner"') as string,
    });
    await expect(copyOn('shop')).rejects.toThrow('the schema "shop" holds something else');
    await expect(copyOn('guests', { url: urlOf(server.address, { user: 'guest' }) })).rejects.toThrow(
      'no right to make the schema "guests"',
    );
  });
});
