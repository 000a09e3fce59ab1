import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createTables, migrate, migrateCopy } from '../../../src/store/sqlite/files/migrations.ts';
import { firstSchema } from '../../../src/store/schema-file.ts';
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
] as const)('%s brings a database of the first schema to the third and keeps its rows', async (_, run) => {
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
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: firstSchema + 2 });
  expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  using fresh = new DatabaseSync(':memory:');
  createTables(fresh, schemas);
  expect(tablesIn(database)).toEqual(tablesIn(fresh));
});

test('a database of the second schema gets only the migration to the third', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, schemas.slice(0, 2));
  migrate(path, { schemas });
  using database = new DatabaseSync(path);
  expect(database.prepare('SELECT size FROM note').all()).toEqual([{ size: null }]);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: firstSchema + 2 });
});

test('a database of the newest schema is not migrated, and no copy of it is made', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, schemas);
  const copies: string[] = [];
  migrate(path, { schemas, onMigration: (copy) => copies.push(copy) });
  expect(copies).toEqual([]);
});

test('a database of a preview, whose schema is before the first, is refused and not changed', async () => {
  await using directory = temporaryDirectory();
  const path = createFile(directory.path, schemas);
  using database = new DatabaseSync(path);
  database.exec(`PRAGMA user_version = ${firstSchema - 1}`);
  expect(() => migrate(path, { schemas })).toThrow('it was written by a preview');
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: firstSchema - 1 });
});
