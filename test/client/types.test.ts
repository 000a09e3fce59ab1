import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { compile } from '../support/process/installed-client.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');

/** Which modules a declaration leads to: files, and what is by name. */
function walk(file: string, seen: Set<string>): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?'([^']+)'/g)) {
    if (name.startsWith('.')) walk(join(dirname(file), name).replace(/(?:\.js|\.ts)$/, '.d.ts'), seen);
    else seen.add(name);
  }
  return seen;
}

/** What the declarations of an entry of the package name beside its own files. */
async function modulesOf(entry: string): Promise<string[]> {
  await using directory = temporaryDirectory();
  const project = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      emitDeclarationOnly: true,
      allowImportingTsExtensions: true,
      rootDir: join(root, 'src'),
      outDir: directory.path,
      typeRoots: [join(root, 'node_modules/@types')],
    },
    files: [join(root, `src/${entry}.ts`)],
    include: [],
  };
  writeFileSync(join(directory.path, 'tsconfig.json'), JSON.stringify(project));
  await compile('--project', directory.path);
  const declarations = join(directory.path, `${entry}.d.ts`);
  expect(existsSync(declarations)).toBe(true);
  return [...walk(declarations, new Set())].filter((name) => !name.startsWith(directory.path));
}

it('the types of latchkey/testing need no others than those of the language', async () => {
  expect(await modulesOf('testing')).toEqual([]);
});

it('nothing is installed with latchkey but the types that its own need: the rest is in it', async () => {
  const read = (path: string): Manifest => JSON.parse(readFileSync(join(root, path), 'utf8')) as Manifest;
  const { dependencies } = read('package.json');
  const packages = (await modulesOf('index')).filter((name) => !name.startsWith('node:'));
  expect(packages.length).toBeGreaterThan(1);
  const isTyped = (name: string): boolean => read(`node_modules/${name}/package.json`).types !== undefined;
  const types = packages.map((name) => (isTyped(name) ? name : `@types/${name}`));
  expect(new Set(Object.keys(dependencies))).toEqual(new Set(types));
});

type Manifest = { dependencies: Readonly<Record<string, string>>; types?: string };

it('older ways to find types lead to the same ones', () => {
  const { exports, typesVersions } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: { './client': { require: { types: string } }; './testing': { types: string } };
    typesVersions: Record<string, Record<string, string[]>>;
  };
  expect(typesVersions).toEqual({
    '*': {
      client: [exports['./client'].require.types],
      testing: [exports['./testing'].types],
    },
  });
});
