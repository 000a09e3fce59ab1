import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import {
  buildPage,
  compressedSize,
  writePage,
  type BuiltPage,
} from '../../../../src/packaging/console-page.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

let built: BuiltPage;
beforeAll(async () => {
  built = await buildPage('console');
});

test('The console has at most 60 kB after gzip.', () => {
  expect(compressedSize(built.files)).toBeLessThanOrEqual(60_000);
});

test('The console is built of its own source and Preact, and of no code of the daemon.', () => {
  const foreign = built.modules.filter(
    (path) =>
      !/\/(?:src\/features\/console\/page|node_modules\/preact)\//.test(path) && !path.startsWith('\0'),
  );
  expect(foreign).toEqual([]);
  expect(built.modules.some((path) => path.includes('/node_modules/preact/'))).toBe(true);
});

test('A build replaces the files of the build before.', async () => {
  await using directory = temporaryDirectory();
  const target = join(directory.path, 'console');
  writePage(built.files, target);
  writeFileSync(join(target, 'main-of-an-old-build.js'), '');
  writePage(built.files, target);
  expect(readdirSync(target).sort()).toEqual([...built.files.keys()].sort());
  expect(readFileSync(join(target, 'index.html'), 'utf8')).toBe(built.files.get('index.html'));
});
