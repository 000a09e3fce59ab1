import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { prepareChange } from '../../../src/store/sqlite/statements.ts';

test('a parameter that a statement lacks, or does not know, is refused', () => {
  using database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE pair (one, other)');
  const add = prepareChange(database, 'INSERT INTO pair (one, other) VALUES (:one, :other)');
  expect(add({ other: 2, one: null }).changes).toBe(1);
  expect(() => add({ one: 1 })).toThrow('the parameter other is missing');
  expect(() => add({ one: 1, other: 2, third: 3 })).toThrow('not in the statement');
  expect(database.prepare('SELECT one, other FROM pair').all()).toEqual([{ one: null, other: 2 }]);
});
