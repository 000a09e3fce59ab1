import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createTables, migrate, migrateCopy } from '../../../src/store/sqlite/files/migrations.ts';
import { prepareTransaction } from '../../../src/store/sqlite/tables.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** A later schema: the second adds a column to the outbox, the third writes the history in another table. */
const added = [
  `ALTER TABLE outbox ADD COLUMN note TEXT;
   UPDATE outbox SET note = 'of ' || subject;`,
  `CREATE TABLE history_3 (license_key TEXT NOT NULL, number INTEGER NOT NULL, change TEXT NOT NULL,
     PRIMARY KEY (license_key, number)) STRICT, WITHOUT ROWID;
   INSERT INTO history_3 SELECT license_key, number, change FROM license_history;
   DROP TABLE license_history;
   ALTER TABLE history_3 RENAME TO license_history;`,
];

function createFile(directory: string, migrations: readonly string[]): string {
  const path = `${directory}/latchkey.db`;
  using database = new DatabaseSync(path);
  createTables(database, migrations);
  prepareTransaction(database).operations.add(buildOperation({ subject: 'KEY-1' }));
  return path;
}

function tablesIn(database: DatabaseSync): unknown {
  return database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
}

test.each([
  ['migrate', (path: string, migrations: readonly string[]) => migrate(path, migrations)],
  [
    'migrateCopy',
    (path: string, migrations: readonly string[]) => migrateCopy(path, 'backup.db', migrations),
  ],
] as const)('%s brings a database of schema 1 to schema 3 and keeps its rows', async (_, run) => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, []);
  new DatabaseSync(path).exec(`INSERT INTO license_history VALUES
    ('KEY-1', 1, 5, 'usage', 'product:press', 0, 1, 1, 1), ('KEY-1', 2, 6, 'refund', 'token:1', 1, 1, 1, 0)`);
  run(path, added);
  using database = new DatabaseSync(path);
  expect(database.prepare('SELECT subject, note FROM outbox').all()).toEqual([
    { subject: 'KEY-1', note: 'of KEY-1' },
  ]);
  expect(database.prepare('SELECT number, change FROM license_history').all()).toEqual([
    { number: 1, change: 'usage' },
    { number: 2, change: 'refund' },
  ]);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 3 });
  expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  using fresh = new DatabaseSync(':memory:');
  createTables(fresh, added);
  expect(tablesIn(database)).toEqual(tablesIn(fresh));
});

test('a database of schema 2 gets only the migration to schema 3', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, added.slice(0, 1));
  migrate(path, added);
  using database = new DatabaseSync(path);
  expect(database.prepare('SELECT note FROM outbox').all()).toEqual([{ note: null }]);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 3 });
});

test('a database of the present schema is not migrated, and no copy of it is made', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, added);
  const copies: string[] = [];
  migrate(path, added, (copy) => copies.push(copy));
  expect(copies).toEqual([]);
});
