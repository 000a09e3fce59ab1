import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { settings } from '../../src/config/configuration.ts';
import { settingsOf } from '../../src/config/schema.ts';
import { exitCode } from '../../src/cli/exit-code.ts';
import { problemCauses } from '../../src/domain/problem/problem-causes.ts';
import { type ProblemCode, problems } from '../../src/domain/problem/problem-table.ts';

const source = join(import.meta.dirname, '../../src');
const book = join(source, 'http/PROBLEMS.md');
const tables = new Set([join('domain', 'problem-table.ts')]);

/** The reference of problems, generated from the tables of problems and causes; `npm run docs` writes it. */
async function problemBook(): Promise<string> {
  const all = Object.entries(problems) as [ProblemCode, (typeof problems)[ProblemCode]][];
  const rows = all.map(([code, { status, title }]) => `| ${status} | [\`${code}\`](#${code}) | ${title} |`);
  const chapters = all.map(
    ([code, { status, title, remedy }]) =>
      `## ${code}\n\n${status}: ${title}.\n\n- Why: ${problemCauses[code]}\n- What to do: ${remedy}\n`,
  );
  const text = `# Problems

Every refusal is one of these, as an RFC 9457 body (README.md, Problems). \`latchkey explain CODE\` says the same at the keyboard. A command of \`latchkey\` that is refused ends with exit code ${exitCode.failed}, whatever the code. Generated from src/domain/problem/problem-table.ts and problem-causes.ts by \`npm run docs\`.

| status | code | title |
|---|---|---|
${rows.join('\n')}

${chapters.join('\n')}`;
  return await format(text, { ...(await resolveConfig(book)), parser: 'markdown' });
}

test('the reference of problems matches the table', async () => {
  await expect(await problemBook()).toMatchFileSnapshot(book);
});

test('every problem of the table is used in the source', () => {
  const text = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !tables.has(path))
    .map((path) => readFileSync(join(source, path), 'utf8'))
    .join('\n');
  // `refuseParameters` has the only code that is not written out where it is used.
  const unused = Object.keys(problems).filter(
    (code) => code !== 'parameters_invalid' && !text.includes(`'${code}'`),
  );
  expect(unused).toEqual([]);
});

test('the causes and remedies of problems are sentences', () => {
  for (const text of [
    ...Object.values(problemCauses),
    ...Object.values(problems).map(({ remedy }) => remedy),
  ]) {
    expect(text).toMatch(/^[A-Z][^\n]{15,}\.$/);
  }
});

test('every setting that a cause or remedy names exists', () => {
  const keys = new Set(
    settingsOf(settings).map(({ path }) => path.filter((step) => step !== '[]').join('.')),
  );
  const texts = [...Object.values(problemCauses), ...Object.values(problems).map(({ remedy }) => remedy)];
  const named = texts.join('\n').match(/\b(?:limits|sync|listen|freshness|upstream)\.[a-z_]+/g) ?? [];
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((key) => !keys.has(key))).toEqual([]);
});
