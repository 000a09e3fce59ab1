import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { errorCodeOf, exitCode } from '../../src/cli/exit-code.ts';

test('src/cli/README.md lists every exit code and its code in JSON', () => {
  const book = readFileSync(join(import.meta.dirname, '../../src/cli/README.md'), 'utf8');
  const rows = Object.values(exitCode).map((code) =>
    code === exitCode.done ? `| ${code} |` : `| ${code} | \`${errorCodeOf(code)}\` |`,
  );
  const cells = [...book.matchAll(/^\| (\d+) +\|[^|]*\|(?:.*(`\w+`))? +\|$/gm)];
  expect(
    cells.map(([, code, name]) => (name === undefined ? `| ${code} |` : `| ${code} | ${name} |`)),
  ).toEqual(rows);
});
