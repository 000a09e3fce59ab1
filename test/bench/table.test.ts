import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rowsInTable, withTable, type ThemeRow } from './table.ts';
import { themes } from './themes/all.ts';

const page = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');

test('the published table has rows of every theme that runs by default, and of no other', () => {
  const expected = themes.filter(({ isExtra }) => isExtra !== true).map(({ name }) => name);
  expect([...new Set(rowsInTable(page).map(({ theme }) => theme))]).toEqual(expected);
});

test('the published table names its commit and its date', () => {
  expect(page).toMatch(/<!-- npm run bench -->\n\nCommit [0-9a-f]{8}, 20\d\d-\d\d-\d\d, .+:\n/);
});

test('a row that misses its goal says so', () => {
  const row: ThemeRow = {
    theme: 'start',
    what: 'start of an agent',
    unit: 'ms',
    figure: { median: 429, low: 400, high: 450 },
    goal: { atMost: 200 },
    from: {},
    note: null,
  };
  const table = withTable('<!-- npm run bench --><!-- end -->', { heading: 'Commit 01234567', rows: [row] });
  expect(table).toContain('| start | start of an agent | 429 ms | 400–450        | ≤ 200 ms | missed |');
  expect(rowsInTable(table)).toEqual([{ theme: 'start', what: 'start of an agent', result: 'missed' }]);
});
