import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
const compiler = join(root, 'node_modules/typescript/bin/tsc');

/** The packages that a declaration file imports, and all declarations that it imports. */
function packagesOf(entry: string): readonly string[] {
  const packages = new Set<string>();
  const files = new Set([entry]);
  for (const file of files) {
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()'([^']+)'/g)) {
      if (name.startsWith('.')) files.add(join(dirname(file), name.replace(/\.[jt]s$/, '.d.ts')));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  }
  return [...packages];
}

test('The public declarations need the types of zod and of no other package.', async () => {
  await using temporary = temporaryDirectory();
  const options = ['--emitDeclarationOnly', '--outDir', temporary.path];
  execFileSync(process.execPath, [compiler, '--project', join(root, 'src'), ...options]);
  for (const entry of ['index.d.ts', 'testing.d.ts']) {
    expect(['zod'], entry).toEqual(expect.arrayContaining([...packagesOf(join(temporary.path, entry))]));
  }
  // Proves that the walk finds packages.
  expect(packagesOf(join(temporary.path, 'daemon/metrics.d.ts'))).toContain('fastify');
});
