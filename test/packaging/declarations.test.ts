import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
const compiler = join(root, 'node_modules/typescript/bin/tsc');

let declarations: string;
const temporary = temporaryDirectory();
beforeAll(() => {
  declarations = temporary.path;
  const options = ['--emitDeclarationOnly', '--outDir', declarations];
  execFileSync(process.execPath, [compiler, '--project', join(root, 'src'), ...options]);
});
afterAll(async () => await temporary[Symbol.asyncDispose]());

/** The packages that a declaration file needs, and all declarations that it needs. */
function neededBy(entry: string): { packages: readonly string[]; files: readonly string[] } {
  const packages = new Set<string>();
  const files = new Set([join(declarations, entry)]);
  for (const file of files) {
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /(?:from |import\(|declare module )'([^']+)'/g,
    )) {
      if (name.startsWith('.')) files.add(join(dirname(file), name.replace(/\.[jt]s$/, '.d.ts')));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  }
  return { packages: [...packages], files: [...files].map((file) => relative(declarations, file)) };
}

test.each(['index.d.ts', 'testing.d.ts'])('%s needs the types of zod and of no other package.', (entry) => {
  expect(['zod']).toEqual(expect.arrayContaining([...neededBy(entry).packages]));
});

test('The walk finds packages.', () => {
  expect(neededBy('daemon/metrics.d.ts').packages).toContain('fastify');
});

test('The public type of a configuration has the sections of all features.', () => {
  const adding = globSync('features/*/config/*.d.ts', { cwd: declarations }).filter((file) =>
    readFileSync(join(declarations, file), 'utf8').includes('interface SectionsOfFeatures'),
  );
  expect(adding.length).toBeGreaterThan(0);
  expect(neededBy('index.d.ts').files).toEqual(expect.arrayContaining(adding));
});
