import { expect, test } from 'vitest';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { checkDatabase } from '../../../../src/features/postgres/store/condition.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';

test.skipIf(!hasPostgres)(
  'a database that takes fewer connections than the pool may have serves all who ask by those that it takes',
  async () => {
    await using server = await startPostgres();
    await using owner = new Database(server.settings());
    await owner.query(`CREATE ROLE few LOGIN PASSWORD 'secret'`);
    await owner.query('CREATE SCHEMA few AUTHORIZATION few');
    const few = { address: { ...server.address, user: 'few' }, schema: 'few' };
    await using database = await server.store(few);
    await owner.query('ALTER ROLE few CONNECTION LIMIT 2');
    const { products, tokens } = database.reader;
    const page = { limit: 1, offset: 0 };
    const askAll = (): Promise<unknown[]> =>
      Promise.all([
        ...Array.from({ length: 8 }, async () => await products.list({}, page)),
        ...Array.from({ length: 8 }, async () => await tokens.get('nobody')),
        ...Array.from({ length: 8 }, () => database.lend((connection) => connection.query('SELECT 1'))),
      ]);
    expect(await askAll()).toHaveLength(24);
    expect((await checkDatabase(database, false)).condition).toBe('ok');
    await owner.query('ALTER ROLE few CONNECTION LIMIT 6');
    database.growAgain();
    expect(await askAll()).toHaveLength(24);
    expect(database.use.connections).toBeGreaterThan(2);
    await owner.query('ALTER ROLE few CONNECTION LIMIT 0');
    await owner.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'`);
    await expect.poll(async () => (await checkDatabase(database, false)).condition).toBe('unavailable');
  },
);
