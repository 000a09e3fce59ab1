import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { output } from '../bench/process.ts';
import { rowsInTable, type ThemeRow } from '../bench/table.ts';
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

  const { rows } = JSON.parse(readFileSync(json, 'utf8')) as { rows: ThemeRow[] };
  expect([...new Set(rows.map(({ theme }) => theme))]).toEqual(names);
  expect(rows.filter((row) => !isWhole(row))).toEqual([]);
  const text = readFileSync(book, 'utf8');
  expect(text).toMatch(/^before\n\n<!--.+\nCommit [0-9a-f]{8}.+\| median.+-->\n\nafter\n$/s);
  expect(rowsInTable(text).map(({ what }) => what)).toEqual(rows.map(({ what }) => what));

  const extra = new Set(themes.filter(({ isExtra }) => isExtra).map(({ name }) => name));
  const published = rowsInTable(readFileSync(join(main, '../README.md'), 'utf8'));
  expect(
    kindsOf(published),
    'test/bench/README.md: run npm run bench -- --markdown test/bench/README.md',
  ).toEqual(kindsOf(rows.filter(({ theme }) => !extra.has(theme))));
});

/** The theme and the name of each row, without forms and numbers, which differ between runs. */
function kindsOf(rows: readonly { theme: string; what: string }[]): string[] {
  const kinds = rows.map(({ theme, what }) => {
    const name = what.replaceAll(/\b(build|executable|source)\b/g, 'FORM').replaceAll(/[\d,]+/g, 'N');
    return `${theme}: ${name}`;
  });
  return [...new Set(kinds)];
}

/** A row has figures, or a note that says why they are missing. */
function isWhole({ figure, note }: Row): boolean {
  if (figure === null) return note?.startsWith('not measured: ') === true;
  return Object.values(figure).every((value) => Number.isFinite(value));
}
