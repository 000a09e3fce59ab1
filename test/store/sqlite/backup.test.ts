import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { backUpInThread } from '../../../src/daemon/store/backups.ts';
import { backUp, draftFrom, putInPlace } from '../../../src/store/sqlite/files/backup.ts';
import { openWriting } from '../../../src/store/sqlite/connection.ts';
import { DatabaseRefused } from '../../../src/store/sqlite/faults.ts';
import { newestSchema } from '../../../src/store/sqlite/files/migrations.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { account, createTestStore, type TestStore } from '../../support/builders/store-builders.ts';
import { ownerOnly } from '../../support/platform.ts';

const name = (count: number): string => `Account ${count}`;

/** "LKEY". */
const previewApplicationId = 0x4c_4b_45_59;

function addAccount(store: TestStore, count: number): void {
  store.writing.transaction.accounts.add(
    { ...account, accountId: name(count), name: name(count) },
    name(count),
  );
}

function accountsIn(path: string): string[] {
  using connection = openWriting(path);
  return connection.transaction.accounts
    .list({}, { limit: 1_000_000, offset: 0 })
    .map(({ accountId }) => accountId);
}

function execute(path: string, sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}

test('a backup is the store as it stood, for its owner alone', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  for (let count = 0; count < 10; count += 1) addAccount(store, count);
  const file = join(elsewhere.path, 'copy.db');
  backUp(store.databasePath, file);
  addAccount(store, 10);
  expect((statSync(file).mode & 0o777).toString(8)).toBe(ownerOnly);
  expect(accountsIn(file)).toEqual(Array.from({ length: 10 }, (_, count) => name(count)));
  expect(readdirSync(elsewhere.path)).toEqual(['copy.db']);
});

test('a backup is made while others write, and each is the store at one moment', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  let count = 0;
  const made = new AbortController();
  const write = async (): Promise<void> => {
    while (!made.signal.aborted) {
      addAccount(store, count);
      count += 1;
      await setImmediate();
    }
  };
  const writing = write();
  for (let copy = 0; copy < 5; copy += 1) {
    const path = join(elsewhere.path, `copy-${copy}.db`);
    const before = count;
    await backUpInThread({ databasePath: store.databasePath, path }, new AbortController().signal);
    const held = accountsIn(path);
    expect(held.length).toBeGreaterThanOrEqual(before);
    expect(held).toEqual(Array.from({ length: held.length }, (_, each) => name(each)).sort());
  }
  made.abort();
  await writing;
});

test('what happened to license keys, and who did what, comes back with a backup', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  const [before, after] = [
    { uses: 0, enabled: true },
    { uses: 1, enabled: true },
  ];
  const change = {
    licenseKey: 'KEY',
    at: 1,
    change: 'usage',
    credential: 'product:p',
    before,
    after,
  } as const;
  const act = { at: 1, actor: 'token:t', act: 'purchase.add', subject: 's', detail: '' };
  store.writing.transaction.history.add(change);
  store.writing.transaction.audit.add(act);
  const file = join(elsewhere.path, 'copy.db');
  backUp(store.databasePath, file);
  using draft = draftFrom(file, elsewhere.path);
  using restored = openWriting(draft.path);
  const page = { limit: 10, offset: 0 };
  expect(restored.transaction.history.list('KEY', page)).toEqual([{ ...change, number: 1 }]);
  expect(restored.transaction.audit.list({}, page)).toEqual([{ ...act, id: 1 }]);
});

test('a backup overwrites nothing', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  const file = join(elsewhere.path, 'copy.db');
  writeFileSync(file, 'precious');
  expect(() => backUp(store.databasePath, file)).toThrow(/EEXIST/);
  expect(readFileSync(file, 'utf8')).toBe('precious');
});

test('a backup is put in the place of a database, which is kept beside it, each time', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  addAccount(store, 1);
  const backup = join(elsewhere.path, 'copy.db');
  backUp(store.databasePath, backup);
  const directory = join(elsewhere.path);
  const kept = [1, 2, 3].map(() => {
    using draft = draftFrom(backup, directory);
    return putInPlace(draft, directory);
  });
  const path = join(directory, 'latchkey.db');
  expect(kept).toEqual([[], [`${path}.replaced`], [`${path}.replaced-2`]]);
  for (const each of [path, `${path}.replaced`, `${path}.replaced-2`])
    expect(accountsIn(each)).toEqual([name(1)]);
  expect((statSync(path).mode & 0o777).toString(8)).toBe(ownerOnly);
});

test('what the replaced database still had in its log is kept with it', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  addAccount(store, 1);
  const backup = join(elsewhere.path, 'copy.db');
  backUp(store.databasePath, backup);
  addAccount(store, 2);
  // As a killed process leaves it: with a log.
  const crashed = join(elsewhere.path, 'crashed');
  cpSync(store.directory, crashed, { recursive: true });
  expect(readdirSync(crashed)).toContain('latchkey.db-wal');
  using draft = draftFrom(backup, crashed);
  const [kept = ''] = putInPlace(draft, crashed);
  expect(accountsIn(kept)).toEqual([name(1), name(2)]);
  expect(accountsIn(join(crashed, 'latchkey.db'))).toEqual([name(1)]);
});

test('a copy of a directory that was in use is taken with its log', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  addAccount(store, 1);
  cpSync(store.directory, join(elsewhere.path, 'copied'), { recursive: true });
  using draft = draftFrom(join(elsewhere.path, 'copied', 'latchkey.db'), elsewhere.path);
  expect(accountsIn(draft.path)).toEqual([name(1)]);
});

test('a backup that a preview wrote is refused by its own name, and is unchanged', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  const backup = join(elsewhere.path, 'preview.db');
  using preview = new DatabaseSync(backup);
  preview.exec(
    `PRAGMA application_id = ${previewApplicationId}; PRAGMA user_version = 8; CREATE TABLE outbox (id)`,
  );
  preview.close();
  const before = readFileSync(backup);
  expect(() => draftFrom(backup, store.directory)).toThrow(
    `The database ${backup} is refused: it was written by a preview; this version cannot read it.`,
  );
  expect(readFileSync(backup).equals(before)).toBe(true);
});

test('a backup of a preview that sent numbered pushes is refused by its own name', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  const backup = join(elsewhere.path, 'preview.db');
  backUp(store.databasePath, backup);
  execute(backup, 'CREATE TABLE sync_operation (id)');
  expect(() => draftFrom(backup, elsewhere.path)).toThrow(
    `The database ${backup} is refused: it was written by a preview; this version cannot read it.`,
  );
});

test('a backup of a newer schema is refused by its own name', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  const backup = join(elsewhere.path, 'newer.db');
  backUp(store.databasePath, backup);
  execute(backup, `PRAGMA user_version = ${newestSchema + 1}`);
  expect(() => draftFrom(backup, elsewhere.path)).toThrow(
    `The database ${backup} is refused: a newer Latchkey wrote it`,
  );
});

test('a file that is no sound database of ours is refused, and nothing is left of it', async () => {
  await using store = createTestStore();
  await using elsewhere = temporaryDirectory();
  for (let count = 0; count < 200; count += 1) addAccount(store, count);
  const good = join(elsewhere.path, 'good.db');
  backUp(store.databasePath, good);
  const files = {
    'text.db': Buffer.from('not a database at all, but long enough to look at'.repeat(10)),
    'empty.db': Buffer.alloc(0),
    'cut.db': readFileSync(good).subarray(0, 20_000),
    'corrupted.db': Buffer.from(readFileSync(good)).fill(0x55, 8192, 30_000),
  };
  for (const [file, content] of Object.entries(files)) writeFileSync(join(elsewhere.path, file), content);
  execute(join(elsewhere.path, 'foreign.db'), 'CREATE TABLE other (a); PRAGMA journal_mode = WAL');
  for (const file of [...Object.keys(files), 'foreign.db', 'none.db']) {
    const path = join(elsewhere.path, file);
    expect(() => draftFrom(path, store.directory), file).toThrow(DatabaseRefused);
    expect(() => draftFrom(path, store.directory), file).toThrow(path);
  }
  expect(readdirSync(store.directory).filter((left) => left.includes('new'))).toEqual([]);
});
