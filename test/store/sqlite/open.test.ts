import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openReading, openWriting } from '../../../src/store/sqlite/connection.ts';
import {
  DatabaseRefused,
  StateDirectoryHeld,
  StateDirectoryUnusable,
} from '../../../src/store/sqlite/faults.ts';
import { latchkeySchemas, migrate, newestSchema } from '../../../src/store/sqlite/files/migrations.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../../support/temporary.ts';
import { createTestStore } from '../../support/builders/store-builders.ts';

function permissions(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

/** Opens and closes a store, so that there is a database. */
function createDatabase(temporary: TemporaryDirectory): { directory: string; databasePath: string } {
  using store = openStore({ directory: temporary.path });
  return { directory: temporary.path, databasePath: store.databasePath };
}

test('a new state directory and all that is in it belong to the owner alone', async () => {
  await using store = createTestStore();
  store.writing.transaction.settings.set('a', 'b');
  expect(permissions(store.directory)).toBe('700');
  const files = readdirSync(store.directory).sort();
  expect(files).toEqual(['latchkey.db', 'latchkey.db-shm', 'latchkey.db-wal', 'latchkey.lock']);
  for (const file of files) expect(permissions(join(store.directory, file))).toBe('600');
});

test('what was written is there when the store is opened again', async () => {
  await using temporary = temporaryDirectory();
  const { directory, databasePath } = createDatabase(temporary);
  {
    using _ = openStore({ directory });
    using writing = openWriting(databasePath);
    writing.transaction.settings.set('instance', 'a');
  }
  using _ = openStore({ directory });
  using reading = openReading(databasePath);
  expect(reading.reader.settings.get('instance')).toBe('a');
});

test('a reading connection may open a database before the writing one does', async () => {
  await using temporary = temporaryDirectory();
  using store = openStore({ directory: temporary.path });
  using reading = openReading(store.databasePath);
  using writing = openWriting(store.databasePath);
  writing.transaction.settings.set('instance', 'a');
  expect(reading.reader.settings.get('instance')).toBe('a');
});

test('both connections are guarded, and commits are durable', async () => {
  await using store = createTestStore();
  const pragma = (database: DatabaseSync, name: string) =>
    Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  for (const { database } of [store.writing, store.reading]) {
    expect(pragma(database, 'journal_mode')).toBe('wal');
    expect(pragma(database, 'trusted_schema')).toBe(0);
    expect(pragma(database, 'cell_size_check')).toBe(1);
    expect(pragma(database, 'foreign_keys')).toBe(1);
  }
  expect(pragma(store.writing.database, 'synchronous')).toBe(2);
});

test('a second opening in the same process is refused, and does not loosen the first', async () => {
  await using temporary = temporaryDirectory();
  const first = openStore({ directory: temporary.path });
  for (const _ of [1, 2]) expect(() => openStore({ directory: temporary.path })).toThrow(StateDirectoryHeld);
  first[Symbol.dispose]();
  openStore({ directory: temporary.path })[Symbol.dispose]();
});

async function createHolder(directory: string): Promise<ChildProcess> {
  const open = import.meta.resolve('../../../src/store/sqlite/files/open.ts');
  const script = `const { openStore } = await import(${JSON.stringify(open)});
    globalThis.store = openStore({ directory: ${JSON.stringify(directory)} });
    process.stdout.write('held');
    process.stdin.resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

test('a directory that another process holds is refused, and free once that process is killed', async () => {
  await using temporary = temporaryDirectory();
  const holder = await createHolder(temporary.path);
  expect(() => openStore({ directory: temporary.path })).toThrow(StateDirectoryHeld);
  expect(() => openStore({ directory: temporary.path })).toThrow(
    `Another process is using the state directory ${temporary.path}`,
  );
  const exited = once(holder, 'exit');
  holder.kill('SIGKILL');
  await exited;
  using store = openStore({ directory: temporary.path });
  expect(store.databasePath).toBe(join(temporary.path, 'latchkey.db'));
});

test('an empty file in place of the database is refused and left as it is', async () => {
  await using temporary = temporaryDirectory();
  const path = join(temporary.path, 'latchkey.db');
  writeFileSync(path, '');
  expect(() => openStore({ directory: temporary.path })).toThrow(DatabaseRefused);
  expect(() => openStore({ directory: temporary.path })).toThrow('it is empty');
  expect(statSync(path).size).toBe(0);
});

test('a file that is no database is refused and left as it is', async () => {
  await using temporary = temporaryDirectory();
  const path = join(temporary.path, 'latchkey.db');
  for (const content of ['x', 'not a database '.repeat(100)]) {
    writeFileSync(path, content);
    expect(() => openStore({ directory: temporary.path })).toThrow(
      'or not an SQLite database: restore a backup: latchkey restore FILE',
    );
    expect(readFileSync(path, 'utf8')).toBe(content);
  }
});

test('a directory in place of the database is refused', async () => {
  await using temporary = temporaryDirectory();
  mkdirSync(join(temporary.path, 'latchkey.db'));
  expect(() => openStore({ directory: temporary.path })).toThrow('latchkey.db in it is not a regular file');
});

test("another program's database is refused and left as it is", async () => {
  await using temporary = temporaryDirectory();
  const path = join(temporary.path, 'latchkey.db');
  using foreign = new DatabaseSync(path);
  foreign.exec('CREATE TABLE theirs (a)');
  foreign.close();
  const before = readFileSync(path);
  expect(() => openStore({ directory: temporary.path })).toThrow('another program wrote it');
  expect(readFileSync(path).equals(before)).toBe(true);
  expect(readdirSync(temporary.path).sort()).toEqual(['latchkey.db', 'latchkey.lock']);
});

test('a database of a newer schema is refused', async () => {
  await using temporary = temporaryDirectory();
  const { directory, databasePath } = createDatabase(temporary);
  using newer = new DatabaseSync(databasePath);
  newer.exec(`PRAGMA user_version = ${newestSchema + 1}`);
  newer.close();
  expect(() => openStore({ directory })).toThrow(DatabaseRefused);
  expect(() => openStore({ directory })).toThrow('a newer Latchkey wrote it');
});

test('a damaged database is refused', async () => {
  await using temporary = temporaryDirectory();
  const { directory, databasePath } = createDatabase(temporary);
  const header = readFileSync(databasePath).subarray(0, 100);
  writeFileSync(databasePath, Buffer.concat([header, Buffer.alloc(5000, 'x')]));
  expect(() => openStore({ directory })).toThrow(DatabaseRefused);
});

test('a log that lost its database is not given a new one', async () => {
  await using temporary = temporaryDirectory();
  writeFileSync(join(temporary.path, 'latchkey.db-wal'), 'pages');
  expect(() => openStore({ directory: temporary.path })).toThrow('its write-ahead log is there');
});

test('a start that was cut off while the database was made leaves nothing in the way', async () => {
  await using temporary = temporaryDirectory();
  writeFileSync(join(temporary.path, 'latchkey.db.new'), 'half');
  createDatabase(temporary);
  expect(readdirSync(temporary.path).sort()).toEqual(['latchkey.db', 'latchkey.lock']);
});

test('a state directory that cannot be made is named', async () => {
  await using temporary = temporaryDirectory();
  const file = join(temporary.path, 'file');
  writeFileSync(file, '');
  for (const directory of [file, join(file, 'state')]) {
    expect(() => openStore({ directory })).toThrow(StateDirectoryUnusable);
    expect(() => openStore({ directory })).toThrow(`The state directory ${directory} cannot be used`);
  }
});

test('a migration leaves a copy of the older database beside it', async () => {
  await using temporary = temporaryDirectory();
  const { databasePath } = createDatabase(temporary);
  const schemas = [...latchkeySchemas(), 'CREATE TABLE added (a TEXT) STRICT;'];
  migrate(databasePath, { schemas });
  const copy = `${databasePath}.schema-${newestSchema}`;
  expect(permissions(copy)).toBe('600');
  using migrated = new DatabaseSync(databasePath);
  using before = new DatabaseSync(copy);
  expect(migrated.prepare('SELECT count(*) AS count FROM added').get()).toEqual({ count: 0 });
  expect(() => before.prepare('SELECT * FROM added')).toThrow('no such table');
  migrate(databasePath, { schemas });
});

test('a migration that fails changes nothing', async () => {
  await using temporary = temporaryDirectory();
  const { directory, databasePath } = createDatabase(temporary);
  const files = readdirSync(directory);
  const schemas = [...latchkeySchemas(), 'CREATE TABLE added (a TEXT) STRICT;', 'not SQL'];
  expect(() => migrate(databasePath, { schemas })).toThrow('syntax error');
  expect(readdirSync(directory)).toEqual(files);
  using database = new DatabaseSync(databasePath);
  expect(() => database.prepare('SELECT * FROM added')).toThrow('no such table');
  database.close();
  openStore({ directory })[Symbol.dispose]();
});
