import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { firstSchema } from '../../../../src/store/schema-file.ts';
import { migrate } from '../../../../src/features/postgres/store/migrations.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';

/** A first schema. */
const notes = { sql: 'CREATE TABLE latchkey.note (text text)', minimum: firstSchema };

describe.skipIf(!hasPostgres)('the schema of an authority on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  test('is made by one of the nodes that start together, and the others find it', async () => {
    const settings = server.settings();
    await using stack = new AsyncDisposableStack();
    const nodes = Array.from({ length: 4 }, () => stack.use(new Database(settings)));
    await Promise.all(nodes.map((node) => migrate(node)));
    const [one] = nodes;
    expect(await one?.reader.accounts.count({})).toBe(0);
  });

  test('of a newer version is used as long as it may be, and refused from then on', async () => {
    await using store = new Database(server.settings({ schema: 'newer_notes' }));
    const newer = { sql: 'CREATE TABLE latchkey.later (id bigint)', minimum: firstSchema };
    await migrate(store, [notes, newer]);
    await migrate(store, [notes]);
    await migrate(store, [notes, newer, { sql: 'DROP TABLE latchkey.later', minimum: firstSchema + 1 }]);
    await expect(migrate(store, [notes])).rejects.toThrow(
      `a newer Latchkey wrote it (schema ${firstSchema + 2}, for versions that know at least ${firstSchema + 1}; this version knows ${firstSchema})`,
    );
  });

  test('that an older version created gets each later migration once, and keeps its rows', async () => {
    await using store = new Database(server.settings({ schema: 'older_notes' }));
    await migrate(store, [notes]);
    await store.query(`INSERT INTO older_notes.note (text) VALUES ('hello')`);
    const addColumn = { sql: `ALTER TABLE latchkey.note ADD COLUMN size bigint`, minimum: firstSchema };
    const fillColumn = {
      sql: `UPDATE latchkey.note SET size = 1 + coalesce(size, length(text))`,
      minimum: firstSchema,
    };
    await migrate(store, [notes, addColumn]);
    await migrate(store, [notes, addColumn, fillColumn]);
    await migrate(store, [notes, addColumn, fillColumn]);
    expect(await store.query(`SELECT text, size FROM older_notes.note`)).toEqual([
      { text: 'hello', size: 6 },
    ]);
    expect(await store.query(`SELECT version, minimum FROM older_notes.schema_version`)).toEqual([
      { version: firstSchema + 2, minimum: firstSchema },
    ]);
  });

  test('is refused, and left as it is, if a preview wrote it: its schema is before the first', async () => {
    await using database = new Database(server.settings({ schema: 'early_notes' }));
    await migrate(database, [notes]);
    await database.query(`UPDATE early_notes.schema_version SET version = ${firstSchema - 1}`);
    await expect(migrate(database, [notes])).rejects.toThrow('were written by a preview');
    expect(await database.query('SELECT version FROM early_notes.schema_version')).toEqual([
      { version: firstSchema - 1 },
    ]);
  });

  test.each(['latchkey_schema', 'sync_operation'])(
    'is refused, and left as it is, if a preview wrote it: it has %s',
    async (table) => {
      await using database = new Database(server.settings({ schema: `preview_${table}` }));
      await database.query(`CREATE SCHEMA preview_${table}`);
      await database.query(`CREATE TABLE preview_${table}.${table} (id integer)`);
      await expect(migrate(database)).rejects.toThrow('were written by a preview');
      expect(
        await database.query(
          `SELECT relname FROM pg_class WHERE relnamespace = 'preview_${table}'::regnamespace`,
        ),
      ).toEqual([{ relname: table }]);
    },
  );

  test('is not put where something else is', async () => {
    const settings = server.settings({ schema: 'shop' });
    await using database = new Database(settings);
    await database.query('CREATE SCHEMA shop');
    await database.query('CREATE TABLE shop.cart (id bigint)');
    await expect(migrate(database)).rejects.toThrow('the schema "shop" holds something else');
    expect(
      await database.query(`SELECT 1 FROM pg_class WHERE relname = 'schema_version'
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
      migrate(database, [{ sql: 'CREATE TABLE latchkey.oh no', minimum: firstSchema }]),
    ).rejects.toThrow('syntax error');
    await migrate(database);
    expect(await database.reader.accounts.count({})).toBe(0);
  });
});
