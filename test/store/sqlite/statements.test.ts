import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { prepareOn } from '../../../src/store/sqlite/statements.ts';

test('a change binds parameters by name, ignores other members, and rejects a missing parameter', () => {
  using database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE pair (one, other)');
  const add = prepareOn(database).change('INSERT INTO pair (one, other) VALUES (:one, :other)');
  expect(add({ third: 3, other: true, one: null }).changes).toBe(1);
  expect(() => add({ one: 1 })).toThrow('the parameter other is missing');
  expect(database.prepare('SELECT one, other FROM pair').all()).toEqual([{ one: null, other: 1 }]);
});
