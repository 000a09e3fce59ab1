import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import {
  createTables,
  latchkeySchemas,
  migrate,
  migrateCopy,
  newestSchema,
} from '../../../src/store/sqlite/files/migrations.ts';
import { defaultLeaseTerms } from '../../../src/domain/lease.ts';
import { openReading } from '../../../src/store/sqlite/connection.ts';
import { readSchema } from '../../../src/store/schema-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Notes and their changes. The second schema adds a column, the third writes the changes in another table. */
const schemas = [
  `CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
   CREATE TABLE change (note INTEGER NOT NULL REFERENCES note, at INTEGER NOT NULL) STRICT;`,
  `ALTER TABLE note ADD COLUMN size INTEGER;
   UPDATE note SET size = length(text);`,
  `CREATE TABLE change_3 (note INTEGER NOT NULL REFERENCES note, number INTEGER NOT NULL, at INTEGER NOT NULL,
     PRIMARY KEY (note, number)) STRICT, WITHOUT ROWID;
   INSERT INTO change_3 SELECT note, row_number() OVER (PARTITION BY note ORDER BY at), at FROM change;
   DROP TABLE change;
   ALTER TABLE change_3 RENAME TO change;`,
] as const;

function createFile(directory: string, known: readonly string[]): string {
  const path = `${directory}/notes.db`;
  using database = new DatabaseSync(path);
  createTables(database, known);
  database.exec("INSERT INTO note (id, text) VALUES (1, 'hello')");
  return path;
}

function tablesIn(database: DatabaseSync): unknown {
  return database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
}

test.each([
  ['migrate', (path: string) => migrate(path, { schemas })],
  ['migrateCopy', (path: string) => migrateCopy(path, 'backup.db', schemas)],
] as const)('%s brings a database of schema 1 to schema 3 and keeps its rows', async (_, run) => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, schemas.slice(0, 1));
  {
    using before = new DatabaseSync(path);
    before.exec('INSERT INTO change (note, at) VALUES (1, 5), (1, 6)');
  }
  run(path);
  using database = new DatabaseSync(path);
  expect(database.prepare('SELECT * FROM note').all()).toEqual([{ id: 1, text: 'hello', size: 5 }]);
  expect(database.prepare('SELECT number, at FROM change').all()).toEqual([
    { number: 1, at: 5 },
    { number: 2, at: 6 },
  ]);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 3 });
  expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  using fresh = new DatabaseSync(':memory:');
  createTables(fresh, schemas);
  expect(tablesIn(database)).toEqual(tablesIn(fresh));
});

test('a database of schema 2 gets only the migration to schema 3', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, schemas.slice(0, 2));
  migrate(path, { schemas });
  using database = new DatabaseSync(path);
  expect(database.prepare('SELECT size FROM note').all()).toEqual([{ size: null }]);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 3 });
});

test('a database of the newest schema is not migrated, and no copy of it is made', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, schemas);
  const copies: string[] = [];
  migrate(path, { schemas, onMigration: (copy) => copies.push(copy) });
  expect(copies).toEqual([]);
});

test('a database of the first schema keeps its products, which get the default terms of leases', async () => {
  await using directory = temporaryDirectory();
  const path = `${directory.path}/latchkey.db`;
  {
    using first = new DatabaseSync(path);
    createTables(first, [readSchema('sqlite')]);
    first.exec(`INSERT INTO account (account_id, name, key_digest, created_at) VALUES ('default', 'default', 'a', 1);
      INSERT INTO product (product_key, account_id, name, recurring, secret_digest, created_at)
        VALUES ('RGsF', 'default', 'Sample', 0, 'b', 1)`);
  }
  migrate(path);
  using reading = openReading(path);
  expect(reading.reader.products.get('RGsF')).toEqual({
    productKey: 'RGsF',
    accountId: 'default',
    name: 'Sample',
    recurring: false,
    createdAt: 1,
    archivedAt: null,
    leaseTerms: defaultLeaseTerms,
  });
  expect(reading.reader.activations.count({})).toBe(0);
  using database = new DatabaseSync(path);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: newestSchema });
});

test('a database without /sync/v1 keeps its licenses and the operations that wait, and gets the tables of a new one', async () => {
  await using directory = temporaryDirectory();
  const path = `${directory.path}/latchkey.db`;
  {
    using before = new DatabaseSync(path);
    createTables(before, latchkeySchemas().slice(0, 4));
    before.exec(`INSERT INTO account (account_id, name, key_digest, created_at) VALUES ('default', 'default', 'a', 1);
      INSERT INTO product (product_key, account_id, name, recurring, secret_digest, created_at)
        VALUES ('RGsF', 'default', 'Sample', 0, 'b', 1);
      INSERT INTO license (license_key, product_key, buyer_email, uses, enabled, created_at)
        VALUES ('KEY', 'RGsF', 'a@example.com', 3, 1, 1);
      INSERT INTO outbox (id, kind, queue, subject, product_key, state, held, maybe_applied, attempts, failures, outage,
        created_at) VALUES ('1', 'usage', 'counter', 'KEY', 'RGsF', 'uncertain', 0, 1, 1, 0, 0, 1)`);
  }
  migrate(path);
  {
    using reading = openReading(path);
    expect(reading.reader.licenses.get('KEY')).toMatchObject({ uses: 3, enabled: true });
    expect(reading.reader.operations.get('1')).toMatchObject({ progress: { state: 'uncertain' } });
  }
  using database = new DatabaseSync(path);
  expect(database.prepare('SELECT revision FROM license').all()).toEqual([{ revision: 0 }]);
  using fresh = new DatabaseSync(':memory:');
  createTables(fresh);
  expect(tablesIn(database)).toEqual(tablesIn(fresh));
});

test('a database without /sync/v1 keeps operations of every kind and state, with their counts and numbers', async () => {
  await using directory = temporaryDirectory();
  const path = `${directory.path}/latchkey.db`;
  let columns = '';
  let kept: unknown;
  const read = (database: DatabaseSync): unknown => [
    database.prepare(`SELECT ${columns} FROM outbox ORDER BY seq`).all(),
    database.prepare('SELECT * FROM outbox_count ORDER BY state').all(),
    database.prepare('SELECT * FROM outbox_backlog ORDER BY subject').all(),
  ];
  {
    using before = new DatabaseSync(path);
    createTables(before, latchkeySchemas().slice(0, 4));
    for (const operation of operationsOfEveryKind()) insert(before, operation);
    before.exec('DELETE FROM outbox WHERE seq = (SELECT max(seq) FROM outbox)');
    columns = Object.keys(before.prepare('SELECT * FROM outbox').get() ?? {}).join();
    kept = read(before);
  }
  migrate(path);
  using database = new DatabaseSync(path);
  expect(read(database)).toEqual(kept);
  // A number is never used again.
  const [first, ...others] = operationsOfEveryKind();
  expect(insert(database, { ...first, id: 'new' })).toBe(others.length + 2);
});

type OperationRow = { id: string } & Record<string, string | number | null>;

const queues = {
  usage: 'counter',
  decrease: 'counter',
  disable: 'state',
  enable: 'state',
  create_coupon: 'coupon',
} as const;

/** Operations as an outbox of schema 4 has them. */
function operationsOfEveryKind(): OperationRow[] {
  const details = {
    pending: {
      next_at: 7,
      failures: 2,
      attempts: 3,
      outage: 1,
      last_error: 'unreachable',
      upstream: 'https://a',
    },
    in_flight: { sent_at: 5, attempts: 1, maybe_applied: 1, base_uses: 4 },
    uncertain: { maybe_applied: 1, held: 1, reconcile_at: 9, base_uses: 4, seen_enabled: 1 },
    delivered: { finished_at: 8, request_id: 'request', credential: 'token' },
    inferred: { finished_at: 8 },
    conflicted: { seen_enabled: 0 },
    dead: { cause: 'refused' },
    cancelled: { finished_at: 8 },
    dropped: { finished_at: 8 },
  };
  return Object.entries(queues).flatMap(([kind, queue]) =>
    Object.entries(details).map(([state, detail]) => ({
      id: `${kind} ${state}`,
      kind,
      queue,
      subject: `subject of ${kind}`,
      product_key: queue === 'coupon' ? null : 'RGsF',
      payload: queue === 'coupon' ? '{"code":"SPRING"}' : null,
      state,
      held: 0,
      maybe_applied: 0,
      attempts: 0,
      failures: 0,
      outage: 0,
      created_at: 1,
      ...detail,
    })),
  );
}

/** Returns the number of the new row. */
function insert(database: DatabaseSync, row: OperationRow): number {
  const names = Object.keys(row);
  const sql = `INSERT INTO outbox (${names.join()}) VALUES (${names.map(() => '?').join()})`;
  return Number(database.prepare(sql).run(...Object.values(row)).lastInsertRowid);
}
