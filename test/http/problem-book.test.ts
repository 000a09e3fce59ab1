import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { exitCode } from '../../src/cli/exit-code.ts';
import { problems } from '../../src/domain/problem-table.ts';

const source = join(import.meta.dirname, '../../src');
const book = join(source, 'http/PROBLEMS.md');

/** The book of problems, made from the table; `npm run docs` writes it. */
async function problemBook(): Promise<string> {
  const rows = Object.entries(problems).map(
    ([code, { status, title, remedy }]) => `| ${status} | \`${code}\` | ${title} | ${remedy} |`,
  );
  const text = `# Problems

Every refusal is one of these, as an RFC 9457 body (README.md, Problems). A command of \`latchkey\` that is refused ends with exit code ${exitCode.failed}, whatever the code. Generated from src/domain/problem-table.ts by \`npm run docs\`.

| status | code | title | what to do |
|---|---|---|---|
${rows.join('\n')}
`;
  return await format(text, { ...(await resolveConfig(book)), parser: 'markdown' });
}

test('the book of problems says what the table says', async () => {
  await expect(await problemBook()).toMatchFileSnapshot(book);
});

test('every problem of the table is refused with somewhere', () => {
  const text = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && path !== join('domain', 'problem-table.ts'))
    .map((path) => readFileSync(join(source, path), 'utf8'))
    .join('\n');
  // `refuseParameters` has the one code that is not written out where it is refused.
  const unused = Object.keys(problems).filter(
    (code) => code !== 'parameters_invalid' && !text.includes(`'${code}'`),
  );
  expect(unused).toEqual([]);
});
