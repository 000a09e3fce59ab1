import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { operationStates } from '../../../src/domain/outbox/operation.ts';
import { migrations, takeSteps } from '../../../src/store/sqlite/files/migrations.ts';
import { prepareTransaction } from '../../../src/store/sqlite/tables.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';
import { page } from '../../support/builders/store-builders.ts';

type Given = { kind?: string; subject?: string; columns: string; values: string };

const states: Readonly<Record<string, Given>> = {
  pending: { columns: 'next_at, seen_enabled', values: '7, 1' },
  in_flight: { columns: 'sent_at, base_uses, upstream', values: "8, 3, 'http://store.example'" },
  uncertain: { columns: 'next_at, fenced_until, base_uses', values: '9, 9, 4', kind: 'decrease' },
  delivered: { columns: 'finished_at', values: '10' },
  inferred: { columns: 'finished_at', values: '11' },
  conflicted: { columns: 'last_error', values: "'changed'", kind: 'disable', subject: 'KEY-2' },
  dead: { columns: 'cause', values: "'refused'", kind: 'disable', subject: 'KEY-3' },
  cancelled: { columns: 'finished_at', values: '12', kind: 'enable' },
  dropped: { columns: 'finished_at, payload', values: "13, '{}'", kind: 'create_coupon', subject: 'SAVE' },
};
const queues: Readonly<Record<string, string>> = {
  disable: 'state',
  enable: 'state',
  create_coupon: 'coupon',
};

/** A database of the fifth schema with an operation in each state, and one that was removed after all of them. */
function createFifth(): DatabaseSync {
  const database = new DatabaseSync(':memory:');
  takeSteps(database, 0, migrations.slice(0, 5));
  const add = (name: string, state: string, { kind = 'usage', subject = 'KEY-1', ...more }: Given): void =>
    database.exec(`INSERT INTO outbox (id, kind, subject, lane, product_key, state, doubtful, held, attempts, failures,
        outage, created_at, request_id, credential, ${more.columns})
      VALUES ('operation-${name}', '${kind}', '${subject}', '${queues[kind] ?? 'counter'}', 'press', '${state}', 0, 0, 1,
        2, 0, 5, 'request-1', 'product:press', ${more.values})`);
  for (const [state, given] of Object.entries(states)) add(state, state, given);
  add('removed', 'delivered', { columns: 'finished_at', values: '14' });
  database.exec(`
    DELETE FROM outbox WHERE id = 'operation-removed';
    INSERT INTO license_history VALUES ('KEY-2', 1, 5, 'refund', 'token:1', 1, 1, 1, 0),
      ('KEY-1', 1, 6, 'usage', 'product:press', 0, 1, 1, 1), ('KEY-1', 2, 7, 'decrease', 'product:press', 1, 1, 0, 1);
  `);
  return database;
}

/** All that the migration writes anew, and what is kept of it by triggers. */
function contentsOf(database: DatabaseSync): unknown {
  const columns = (table: string): string =>
    database
      .prepare(`SELECT name FROM pragma_table_info('${table}') ORDER BY name`)
      .all()
      .map(({ name }) => String(name))
      .join(', ');
  return ['outbox', 'outbox_depth', 'outbox_backlog', 'license_history'].map((table) =>
    database.prepare(`SELECT ${columns(table)} FROM ${table} ORDER BY ${columns(table)}`).all(),
  );
}

test('a store of the fifth schema keeps every operation and all history, and what they add up to', () => {
  using database = createFifth();
  const before = contentsOf(database);
  takeSteps(database, 5, migrations);
  expect(contentsOf(database)).toEqual(before);
  expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  const { operations, history } = prepareTransaction(database);
  expect(operations.list(null, page).map(({ progress }) => progress.state)).toEqual([
    'pending',
    'in_flight',
    'uncertain',
    'conflicted',
    'dead',
  ]);
  expect(operations.backlog('KEY-1')).toEqual({ usages: 2, decreases: 1, disables: 0, unfinished: 3 });
  expect(history.count('KEY-1')).toBe(2);
});

test('a store of the fifth schema goes on numbering and counting its operations', () => {
  using database = createFifth();
  takeSteps(database, 5, migrations);
  const { operations } = prepareTransaction(database);
  const added = operations.add(buildOperation());
  expect(added.seq).toBe(operationStates.length + 2);
  operations.put({ ...added, progress: { state: 'delivered', finishedAt: 20 } });
  expect(operations.depth()).toMatchObject({ pending: 1, delivered: 2 });
  operations.moveToSubject('KEY-1', 'KEY-9');
  expect(operations.backlog('KEY-1')).toMatchObject({ unfinished: 0 });
  expect(operations.backlog('KEY-9')).toEqual({ usages: 2, decreases: 1, disables: 0, unfinished: 3 });
});

test.each([
  ['as it was released', ''],
  ['of a version between two releases, which had the index of the seventh', migrations[6] ?? ''],
])('a store of the sixth schema %s comes to the present one', (_, more) => {
  const indexesOf = (database: DatabaseSync): unknown =>
    database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name").all();
  using anew = new DatabaseSync(':memory:');
  takeSteps(anew, 0, migrations);
  using sixth = new DatabaseSync(':memory:');
  takeSteps(sixth, 0, migrations.slice(0, 6));
  sixth.exec(more);
  takeSteps(sixth, 6, migrations);
  expect(indexesOf(sixth)).toEqual(indexesOf(anew));
});

test('a store keeps stored answers that are nested too deeply for SQLite to read, as a store may send them', () => {
  using database = new DatabaseSync(':memory:');
  takeSteps(database, 0, migrations.slice(0, 2));
  const value = `{"ok":true,"value":{"snapshot":{"extra":${'['.repeat(1500)}${']'.repeat(1500)}}}}`;
  database.prepare("INSERT INTO idempotency VALUES ('product:press', 'key', 'f', ?, 5, 0)").run(value);
  takeSteps(database, 2, migrations);
  expect(database.prepare('SELECT value FROM idempotency').get()).toEqual({ value });
});
