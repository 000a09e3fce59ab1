import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../src/store/postgres/database.ts';
import { migrate, migrations } from '../../../src/store/postgres/migrations.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../../support/postgres/postgres.ts';

describe.skipIf(!hasPostgres)('the schema of an authority on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  test('is made by one of the copies that start together, and the others find it', async () => {
    const settings = server.settings();
    await using stack = new AsyncDisposableStack();
    const copies = Array.from({ length: 4 }, () => stack.use(new Database(settings)));
    await Promise.all(copies.map((copy) => migrate(copy)));
    const [one] = copies;
    expect(await one?.reader.accounts.count({})).toBe(0);
  });

  test('of a newer version is used as long as it may be, and refused from then on', async () => {
    await using store = await server.store();
    const newer = { sql: 'CREATE TABLE latchkey.later (id bigint)', minimum: 1 };
    await migrate(store, [...migrations, newer]);
    await migrate(store);
    await migrate(store, [...migrations, newer, { sql: 'DROP TABLE latchkey.later', minimum: 2 }]);
    await expect(migrate(store)).rejects.toThrow(
      /a newer Latchkey made it \(schema 3, for those that know 2/,
    );
  });

  test('is not put where something else is', async () => {
    const settings = server.settings({ schema: 'shop' });
    await using database = new Database(settings);
    await database.query('CREATE SCHEMA shop');
    await database.query('CREATE TABLE shop.cart (id bigint)');
    await expect(migrate(database)).rejects.toThrow('the schema "shop" holds something else');
    expect(
      await database.query(`SELECT 1 FROM pg_class WHERE relname = 'latchkey_schema'
      AND relnamespace = 'shop'::regnamespace`),
    ).toEqual([]);
  });

  test('is made by a role that may do nothing but use its own schema, and by no other', async () => {
    await using owner = new Database(server.settings());
    await owner.query(`CREATE ROLE seller LOGIN PASSWORD 'secret'`);
    await owner.query('CREATE SCHEMA sellers AUTHORIZATION seller');
    const address = { ...server.address, user: 'seller' };
    await using own = new Database(server.settings({ address, schema: 'sellers' }));
    await migrate(own);
    expect(await own.reader.products.count({})).toBe(0);
    // What somebody else keeps beside the tables is no matter.
    await owner.query('CREATE TABLE sellers.report (id bigint)');
    await migrate(own);
    await using other = new Database(server.settings({ address, schema: 'others' }));
    await expect(migrate(other)).rejects.toThrow(
      /no right to make or use the schema "others".* CREATE SCHEMA "others"/,
    );
  });

  test.each(['LATIN1', 'SQL_ASCII'])(
    'is not made in a database of %s, which lacks characters',
    async (encoding) => {
      await using owner = new Database(server.settings());
      const database = encoding.toLowerCase();
      await owner.query(`CREATE DATABASE ${database} TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`);
      await using lacking = new Database(server.settings({ address: { ...server.address, database } }));
      await expect(migrate(lacking)).rejects.toThrow(`its encoding is ${encoding}; UTF8 is needed`);
      expect(await lacking.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'Latchkey%'`)).toEqual(
        [],
      );
    },
  );

  test('that could not be made whole is not there at all', async () => {
    await using database = new Database(server.settings());
    await expect(
      migrate(database, [...migrations, { sql: 'CREATE TABLE latchkey.oh no', minimum: 1 }]),
    ).rejects.toThrow('syntax error');
    await migrate(database);
    expect(await database.reader.accounts.count({})).toBe(0);
  });
});
