import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { conditionsOf, reasons } from './support/report/not-tested.ts';
import { temporaryDirectory } from './support/temporary.ts';

const root = join(import.meta.dirname, '..');

test('every condition under which a test is skipped has a reason in words, and no other has', () => {
  const files = globSync('test/**/*.test.ts', { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  );
  const conditions = new Set(files.flatMap(conditionsOf));
  expect([...conditions].sort()).toEqual(Object.keys(reasons).sort());
});

test('a run ends with the reasons for which tests were skipped', async () => {
  await using folder = temporaryDirectory();
  const reporter = join(root, 'test/support/report/not-tested.ts');
  writeFileSync(
    join(folder.path, 'vitest.config.ts'),
    `import { NotTestedReporter } from ${JSON.stringify(reporter)};
    export default { test: { include: ['*.test.ts'], includeTaskLocation: true, globals: true,
      reporters: [new NotTestedReporter(['the projects on PostgreSQL'])] } };`,
  );
  writeFileSync(
    join(folder.path, 'some.test.ts'),
    `const hasPostgres = false;
    describe.skipIf(!hasPostgres)('a database', () => {
      test('one', () => {});
      test('two', () => {});
    });
    test('a note', ({ skip }) => skip('PyJWT is not installed here'));
    test('runs', () => {});`,
  );
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [vitest, 'run', '--root', folder.path]);
  expect(stdout).toContain(
    ' Not tested here:\n' +
      '  all   the projects on PostgreSQL\n' +
      '    2  PostgreSQL is not installed (apt-get install postgresql)\n' +
      '    1  PyJWT is not installed here\n',
  );
});
