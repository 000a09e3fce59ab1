import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { output } from '../bench/process.ts';
import type { Row } from '../bench/theme.ts';
import { themes } from '../bench/themes/all.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const main = join(import.meta.dirname, '../bench/main.ts');

it('the benchmark measures every theme without a failed request', { timeout: 600_000 }, async () => {
  await using folder = temporaryDirectory();
  const json = join(folder.path, 'results.json');
  const names = themes.map(({ name }) => name);
  const book = join(folder.path, 'book.md');
  writeFileSync(book, 'before\n\n<!-- npm run bench -->\n\nold\n\n<!-- end -->\n\nafter\n');
  const options = ['--quick', '--form', 'source', '--json', json, '--markdown', book];
  await output([process.execPath, main, ...names, ...options]);

  const { rows } = JSON.parse(readFileSync(json, 'utf8')) as { rows: (Row & { theme: string })[] };
  expect([...new Set(rows.map(({ theme }) => theme))]).toEqual(names);
  expect(rows.filter((row) => !isWhole(row))).toEqual([]);
  const text = readFileSync(book, 'utf8');
  expect(text).toMatch(/^before\n\n<!--.+\| median.+-->\n\nafter\n$/s);
  for (const { what } of rows) expect(text).toContain(`| ${what} `);
});

/** A row has figures, or a note that says why they are missing. */
function isWhole({ figure, note }: Row): boolean {
  if (figure === null) return note?.startsWith('not measured: ') === true;
  return Object.values(figure).every((value) => Number.isFinite(value));
}
