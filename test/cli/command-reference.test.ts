import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { errorCodeOf, exitCode } from '../../src/cli/exit-code.ts';
import { commandsBook } from '../support/reference/commands-reference.ts';

const book = join(import.meta.dirname, '../../src/cli/README.md');
const mark = '<!-- What follows is generated: npm run docs -->';
const written = readFileSync(book, 'utf8');

test('the reference of commands in src/cli/README.md is up to date', async () => {
  const [prose, tables] = written.split(mark);
  expect(tables).toBeDefined();
  const text = `${prose}${mark}\n\n${await commandsBook()}\n`;
  const formatted = await format(text, { ...(await resolveConfig(book)), parser: 'markdown' });
  await expect(formatted).toMatchFileSnapshot(book);
});

test('src/cli/README.md lists every exit code and its code in JSON', () => {
  const rows = Object.values(exitCode).map((code) =>
    code === exitCode.done ? `| ${code} |` : `| ${code} | \`${errorCodeOf(code)}\` |`,
  );
  const cells = [...written.matchAll(/^\| (\d+) +\|[^|]*\|(?:.*(`\w+`))? +\|$/gm)];
  expect(
    cells.map(([, code, name]) => (name === undefined ? `| ${code} |` : `| ${code} | ${name} |`)),
  ).toEqual(rows);
});
