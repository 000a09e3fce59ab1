import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { sqlOn } from '../../../src/store/sqlite/statements.ts';

test('a statement binds a parameter as often as its text names it, and stores a boolean as a number and an array as JSON', () => {
  using database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE pair (one, other)');
  const sql = sqlOn(database);
  expect(sql.changes('INSERT INTO latchkey.pair (one, other) VALUES ($2, $1::text || $1)')('a', true)).toBe(
    1,
  );
  expect(sql.get('SELECT one, other FROM pair')()).toEqual({ one: 1, other: 'aa' });
  expect(sql.column('SELECT value FROM json_each($1)')(['b', 'c'])).toEqual(['b', 'c']);
});

test('a statement without one of its values is refused', () => {
  using database = new DatabaseSync(':memory:');
  expect(() => sqlOn(database).value('SELECT $1')()).toThrow('the value $1 is missing');
});
