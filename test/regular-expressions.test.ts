import { globSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { check } from 'recheck';
import { parseAst } from 'rolldown/parseAst';
import { expect, test, vi } from 'vitest';
import { readParameters } from '../src/http/entry/request.ts';
import { readCsv } from '../src/wire/csv.ts';

type Found = { file: string; pattern: string; flags: string };

/** Finds the regular expressions that are written in a file, and those that it makes when it runs. */
function expressionsIn(file: string): { written: Found[]; made: string[] } {
  const written: Found[] = [];
  const made: string[] = [];
  const text = readFileSync(file, 'utf8');
  const left: unknown[] = [parseAst(text, { lang: 'ts' }, file)];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if ('regex' in node) written.push({ file, ...(node.regex as { pattern: string; flags: string }) });
    if ('callee' in node && (node.callee as { name?: string }).name === 'RegExp') made.push(file);
    left.push(...(Object.values(node) as unknown[]));
  }
  return { written, made };
}

// The scripts of packaging read files of this project alone.
const files = globSync('src/**/*.ts').filter((file) => !file.startsWith('src/packaging/'));
const expressions = files.map(expressionsIn);

/** Without such a quantifier an expression takes a bounded number of steps at each character. */
const unbounded = /[*+]|,\}/;

// recheck proves that an expression takes linear time, or feeds it the worst inputs that it finds and counts the steps.
test('every regular expression in src takes linear time on any input', { timeout: 600_000 }, async () => {
  vi.stubEnv('RECHECK_BACKEND', 'pure');
  const written = expressions.flatMap((found) =>
    found.written.filter(({ pattern }) => unbounded.test(pattern)),
  );
  expect(written.length).toBeGreaterThan(50);
  const slow: string[] = [];
  for (const { file, pattern, flags } of written) {
    const found = await check(pattern, flags, { timeout: null, attackTimeout: null });
    const why = found.status === 'vulnerable' ? found.attack.pattern : found.status;
    if (found.status !== 'safe') slow.push(`${file}: /${pattern}/${flags} ${why}`);
  }
  expect(slow).toEqual([]);
});

test('regular expressions that are made at run time consist of escaped text or of no input at all', () => {
  expect(expressions.flatMap(({ made }) => made).sort()).toEqual([
    'src/features/console/http/masking.ts',
    'src/store/sqlite/files/backup.ts',
    'src/upstream/classification.ts',
    'src/wire/csv.ts',
    'src/wire/response.ts',
    'src/wire/terms.ts',
  ]);
});

const importBytes = 4 * 1024 ** 2;
const longest = (text: string): string => text.repeat(importBytes / text.length);

/** The worst text for each way to read a row. The row with the fault comes last. */
const worstCsv: readonly (readonly [name: string, text: string])[] = [
  ['blank lines before a badly quoted row', `a,b\n"q",1${longest('\n')}x"y,z\n`],
  ['carriage returns before a badly quoted row', `a,b\n"q",1${longest('\r')}x"y,z\n`],
  ['line ends in a quoted cell', `a,b\n"q",1\n"${'\r\n'.repeat(32_000)}"x,z\n`],
  ['doubled quotes before a misplaced one', `a,b\n"${'""'.repeat(32_000)}"x,z\n`],
  ['commas before a misplaced quote', `a,b\n"q",1\n${longest(',')}x"\n`],
  ['rows with a misplaced quote', `a,b\n${longest('x"y,z\n')}`],
];

// On these texts, cubic and quadratic time would be hours. The limit of the test ends them.
test.each(worstCsv)('CSV of the size of the largest import is read in linear time: %s', async (_, text) => {
  let last: unknown = null;
  for await (const rows of readCsv(Readable.from([Buffer.from(text)]))) last = rows.at(-1) ?? last;
  expect(last).toMatchObject({ detail: expect.stringContaining('misplaced quote') as string });
});

test('a CSV header with very many columns is refused', async () => {
  const text = `"a"${longest(',')}\n1,2\n`;
  const reading = (async () => {
    for await (const _ of readCsv(Readable.from([Buffer.from(text)]))) continue;
  })();
  await expect(reading).rejects.toThrow('The header has more than 1000 columns.');
});

test('other work has its turn while a large CSV file is parsed', async () => {
  let turns = 0;
  const count = (): void => {
    turns += 1;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  try {
    for await (const _ of readCsv(Readable.from([Buffer.from(`a,b\n"1",2${longest('\n')}`)]))) continue;
  } finally {
    clearImmediate(timer);
  }
  expect(turns).toBeGreaterThanOrEqual(importBytes / 65_536);
});

test.each([
  ['of one long string', 'x'.repeat(16 * 1024 ** 2)],
  ['of escaped quotes', String.raw`\"`.repeat(2 * 1024 ** 2)],
  ['of braces and colons', '{[:]}'.repeat(1024 ** 2)],
])('a member that a JSON body repeats is found behind a value %s', (_, value) => {
  const body = Buffer.from(`{"a":"${value}","b":{"c":1},"a":1}`);
  expect(() => readParameters('application/json', body, 32)).toThrow('a is given more than once.');
});
