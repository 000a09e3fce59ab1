/**
 * Checks that features can be deleted. In a copy of this repository without the folders of a feature and without its
 * lines in the lists of features, no file of the core imports what is gone. A copy without any feature also passes the
 * type check and the tests of the core.
 *
 *     node test/features/deletion.ts              each feature, then all at once
 *     node test/features/deletion.ts sandbox      one feature, with the type check and the tests of the rest
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { features } from '../../src/features.ts';

const root = join(import.meta.dirname, '../..');

/** Files that run or describe the whole program. They are deleted with a feature that they import. */
const ofWhole =
  /^(?:src\/(?:testing|index)\.ts|test\/[^/]+$|test\/(?:features|client|e2e|fault|bench|windows|packaging|stores|support\/stores|property\/simulation)\/)/;

/** The folders with tests of the core alone. Those of `cli` and `http` also call what features add. */
const coreTests = ['config', 'domain', 'service', 'store', 'sync', 'upstream', 'wire'];

/** The only files of the core that name features. */
const lists = ['src/features.ts', 'src/config/feature-sections.ts', 'src/config/public-settings.ts'];

const named = process.argv.slice(2);
const unknown = named.filter((name) => !features.some((feature) => feature.name === name));
if (unknown.length > 0) throw new Error(`no such feature: ${unknown.join(', ')}`);
const rounds = named.length > 0 ? [named] : features.map(({ name }) => [name]);
let failed = 0;
for (const names of rounds) check(names, named.length > 0);
if (named.length === 0)
  check(
    features.map(({ name }) => name),
    true,
  );
process.exitCode = failed === 0 ? 0 : 1;

/**
 * Checks a copy without these features, and without those that need them. `whole` adds the type check, which takes half
 * a minute and finds little once every import is there, and the tests.
 */
function check(names: readonly string[], whole: boolean): void {
  const gone = withDependents(names);
  const directory = join(root, 'dist/without-features');
  rmSync(directory, { recursive: true, force: true });
  copyInto(directory);
  const strays = remove(directory, gone);
  const title = `without ${gone.join(', ')}`;
  for (const path of strays) report(`${title}: ${path} does not belong to it, and imports it`);
  if (whole) {
    run(directory, title, ['tsc', '--noEmit', '-p', '.']);
    const page = 'src/features/console/page';
    if (existsSync(join(directory, page))) run(directory, title, ['tsc', '--project', page]);
    const vitest = ['vitest', 'run', '--config', 'test/vitest.config.ts', '--reporter=dot'];
    run(directory, title, [
      ...vitest,
      '--project=in process',
      ...coreTests.map((folder) => `test/${folder}/`),
    ]);
  } else if (strays.length === 0) process.stdout.write(`${title}: every import is there\n`);
  rmSync(directory, { recursive: true, force: true });
}

function withDependents(names: readonly string[]): readonly string[] {
  const gone = new Set(names);
  for (let size = 0; size !== gone.size;) {
    size = gone.size;
    for (const { name, needs = [] } of features) if (needs.some((need) => gone.has(need))) gone.add(name);
  }
  return [...gone];
}

/** Packages are found in the repository around the copy. */
function copyInto(directory: string): void {
  const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root });
  for (const path of tracked.toString().split('\0')) {
    if (path === '' || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    copyFileSync(join(root, path), join(directory, path));
  }
}

/** Deletes features and what imports them. Returns the files of the core that do. */
function remove(directory: string, gone: readonly string[]): readonly string[] {
  for (const name of gone)
    for (const folder of ['src', 'test'])
      rmSync(join(directory, folder, 'features', name), { recursive: true, force: true });
  for (const list of lists) removeFromList(join(directory, list), gone);
  const strays: string[] = [];
  for (
    let dangling = importersOfNothing(directory);
    dangling.length > 0;
    dangling = importersOfNothing(directory)
  )
    for (const path of dangling) {
      if (!ofWhole.test(path)) strays.push(path);
      rmSync(join(directory, path));
    }
  return strays;
}

function removeFromList(list: string, gone: readonly string[]): void {
  const lines = readFileSync(list, 'utf8').split('\n');
  const kept = lines.filter((line) => !gone.some((name) => line.includes(`/features/${name}/`)));
  const names = new Set(
    lines.filter((line) => !kept.includes(line)).map((line) => /import \{ (\w+) \}/.exec(line)?.[1] ?? ''),
  );
  writeFileSync(
    list,
    kept
      .join('\n')
      .replace(/(\w+)(?:,\s*)?/g, (word: string, name: string) => (names.has(name) ? '' : word))
      .replace(', ]', ']'),
  );
}

/** The files that import a file that does not exist. */
function importersOfNothing(directory: string): readonly string[] {
  return globSync('{src,test}/**/*.{ts,tsx}', { cwd: directory }).filter((path) => {
    const text = readFileSync(join(directory, path), 'utf8');
    return [...text.matchAll(/(?:from|import\(?) ?'(\.[^']+\.tsx?)'/g)].some(([, written = '']) => {
      const target = posix.join(posix.dirname(path), written);
      // Some texts only look like imports.
      return existsSync(join(root, target)) && !existsSync(join(directory, target));
    });
  });
}

function run(directory: string, title: string, [program = '', ...words]: readonly string[]): void {
  const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`;
  const { status } = spawnSync(program, words, {
    cwd: directory,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status === 0) process.stdout.write(`${title}: ${program} passes\n`);
  else report(`${title}: ${program} fails`);
}

function report(line: string): void {
  failed += 1;
  process.stderr.write(`${line}\n`);
}
