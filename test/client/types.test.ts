import { readFileSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { guidePrograms } from '../support/reference/client-guide.ts';
import { compile } from '../support/process/installed-client.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
let directory: TemporaryDirectory;
let compilerErrors: string;

/** Compiles the entries of the package and the programs of the client guide together: one run of tsc is slow enough. */
beforeAll(async () => {
  directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'guide'));
  for (const [index, { source }] of guidePrograms.entries()) {
    writeFileSync(join(directory.path, 'guide', `program-${index}.mts`), source);
  }
  symlinkSync(join(root, 'node_modules'), join(directory.path, 'node_modules'));
  const project = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noEmitOnError: false,
      emitDeclarationOnly: true,
      declaration: true,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      rootDir: '/',
      outDir: join(directory.path, 'out'),
      typeRoots: [join(root, 'node_modules/@types')],
    },
    files: [join(root, 'src/index.ts'), join(root, 'src/testing.ts')],
    include: [join(directory.path, 'guide')],
  };
  writeFileSync(join(directory.path, 'tsconfig.json'), JSON.stringify(project));
  compilerErrors = await compile('--project', directory.path).then(
    () => '',
    (error: unknown) => (error as Error).message,
  );
});
afterAll(() => directory[Symbol.asyncDispose]());

/** Gives the packages and built-in modules that the declarations of an entry import. */
function importsOf(entry: string): string[] {
  const names = collectImports(join(directory.path, 'out', root, `src/${entry}.d.ts`), new Set());
  return [...names].filter((name) => !name.startsWith(directory.path));
}

function collectImports(file: string, seen: Set<string>): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?'([^']+)'/g)) {
    if (name.startsWith('.'))
      collectImports(join(dirname(file), name).replace(/(?:\.js|\.ts)$/, '.d.ts'), seen);
    else seen.add(name);
  }
  return seen;
}

it('the programs of the client guide and the entries of the package have no type errors', () => {
  expect(compilerErrors).toBe('');
});
it('the declarations of latchkey/testing import no package and no built-in module', () => {
  expect(importsOf('testing')).toEqual([]);
});

it('the dependencies of the package are exactly the packages that its declarations import', () => {
  const read = (path: string): Manifest => JSON.parse(readFileSync(join(root, path), 'utf8')) as Manifest;
  const { dependencies } = read('package.json');
  const packages = importsOf('index').filter((name) => !name.startsWith('node:'));
  expect(packages.length).toBeGreaterThan(1);
  const isTyped = (name: string): boolean => read(`node_modules/${name}/package.json`).types !== undefined;
  const types = packages.map((name) => (isTyped(name) ? name : `@types/${name}`));
  expect(new Set(Object.keys(dependencies))).toEqual(new Set(types));
});

type Manifest = { dependencies: Readonly<Record<string, string>>; types?: string };

it('typesVersions and exports name the same declarations', () => {
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
