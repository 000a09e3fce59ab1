import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cachedCounts } from '../../../../src/features/postgres/daemon/node-cache.ts';
import { sellOne, startNode, type AuthorityNode } from '../support/nodes.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { buildLicense, product } from '../../../support/builders/store-builders.ts';

async function scrape(node: AuthorityNode): Promise<(series: string) => number | undefined> {
  const text = await (await node.call('/metrics')).text();
  return (series) => {
    const line = text.split('\n').find((each) => each.startsWith(`latchkey_${series} `));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')));
  };
}

describe.skipIf(!hasPostgres)('The metrics of an authority on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  test('The metrics show connections, transactions, retries and the state of the database.', async () => {
    await using node = await startNode(server, { schema: 'measured', pool: 3 });
    const licenseKey = await sellOne(node);
    const use = async (): Promise<number> =>
      (await node.call('/api/v2/license/usage', { method: 'PUT', body: { license_key: licenseKey } })).status;
    expect(await use()).toBe(200);
    const well = await scrape(node);
    expect(well('database_connections_limit')).toBe(3);
    const connections =
      (well('database_connections{state="used"}') ?? 0) + (well('database_connections{state="free"}') ?? 0);
    expect(connections).toBeGreaterThan(0);
    expect(connections).toBeLessThanOrEqual(3);
    expect(well('database_waiting')).toBe(0);
    // The start, the product, the sale, the use.
    expect(well('commit_duration_seconds_count')).toBeGreaterThanOrEqual(4);
    expect(well('database_connection_wait_seconds_count')).toBe(well('commit_duration_seconds_count'));
    expect(well('commit_duration_seconds_sum')).toBeGreaterThan(0);
    expect(well('database_repeats_total{reason="away"}')).toBe(0);
    expect(well('database_state{state="unavailable"}')).toBe(0);
    expect(well('records{freshness="fresh"}')).toBe(1);
    await server.stop('immediate');
    try {
      const state = async (): Promise<unknown> => (await scrape(node))('database_state{state="unavailable"}');
      await expect.poll(state).toBe(1);
      // A use would first read the license, and reads are not retried.
      const body = { name: 'Player', product_key: 'player' };
      expect((await node.call('/admin/v1/products', { body })).status).toBe(503);
      const away = await scrape(node);
      expect(away('database_repeats_total{reason="away"}')).toBeGreaterThan(0);
      // The last count stays.
      expect(away('records{freshness="fresh"}')).toBe(1);
    } finally {
      await server.start();
    }
  });

  test('The count of licenses is cached, and concurrent callers share one count.', async () => {
    await using database = await server.store();
    let [at, isReadable] = [0, true];
    const counts = cachedCounts(database.reader, {
      clock: { monotonic: () => at },
      isReadable: () => isReadable,
    });
    const add = async (licenseKey: string, enabled: boolean): Promise<void> =>
      await database.lend(async (connection) => {
        await connection.begin(null, []);
        const { accounts, products, licenses } = connection.transaction;
        const accountId = 'shop';
        if ((await accounts.get(accountId)) === null) {
          await accounts.add({ accountId, name: 'Shop', createdAt: 0 }, 'digest');
          await products.add({ ...product, accountId }, 'digest');
        }
        await licenses.add(buildLicense({ licenseKey, enabled }));
        await connection.commit();
      });
    await add('ONE', true);
    isReadable = false;
    expect(await counts()).toBeNull();
    isReadable = true;
    expect(await Promise.all([counts(), counts()])).toMatchObject([{ fresh: 1 }, { fresh: 1, disabled: 0 }]);
    await add('TWO', false);
    at = 9_999;
    expect(await counts()).toMatchObject({ fresh: 1, disabled: 0 });
    at = 10_000;
    expect(await counts()).toMatchObject({ fresh: 1, disabled: 1 });
    await add('THREE', true);
    [at, isReadable] = [30_000, false];
    expect(await counts()).toMatchObject({ fresh: 1, disabled: 1 });
  });
});
