import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { hashLicenseKeys } from '../../src/daemon/log.ts';
import { bundle } from '../../src/packaging/bundle.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const sourceWithPackage = 'src/daemon/log.ts';

test('A bundle for the npm package includes its packages, and knows its own file.', async () => {
  await using temporary = temporaryDirectory();
  const file = join(temporary.path, 'package.js');
  await bundle('src/daemon/threads/worker.ts', 'package', { file, codeSplitting: false });
  expect(readFileSync(file, 'utf8')).toContain('import.meta.url');
  await bundle(sourceWithPackage, 'package', { file, codeSplitting: false });
  expect(readFileSync(file, 'utf8')).not.toMatch(/from "lru-cache"/);
});

test('A bundle for the executable includes its packages, in ASCII alone.', async () => {
  await using temporary = temporaryDirectory();
  const file = join(temporary.path, 'included.mjs');
  await bundle(sourceWithPackage, 'executable', { file, codeSplitting: false });
  const code = readFileSync(file, 'utf8');
  expect(code).not.toMatch(/from "lru-cache"/);
  expect(code).toMatch(/^[\0-\x7f]*$/);
  const bundled = (await import(file)) as { hashLicenseKeys: typeof hashLicenseKeys };
  const lines: unknown[] = [];
  const log = {
    debug: () => 0,
    info: (fields: unknown) => lines.push(fields),
    warn: () => 0,
    error: () => 0,
  };
  bundled.hashLicenseKeys(log, 'secret').info({ licenseKey: 'KEY' }, 'a line');
  expect(lines).toEqual([
    { licenseKey: undefined, license: expect.stringMatching(/^[0-9a-f]{12}$/) as string },
  ]);
});

test('A bundle keeps characters beyond ASCII, as escapes.', async () => {
  await using temporary = temporaryDirectory();
  const [input, file] = [join(temporary.path, 'price.ts'), join(temporary.path, 'price.mjs')];
  writeFileSync(input, 'export const price: string = `5 € ${1}`;\nexport const word = /^\\p{L}ü$/u;\n');
  await bundle(input, 'executable', { file });
  expect(readFileSync(file, 'utf8')).toMatch(/^[\0-\x7f]*$/);
  const { price, word } = (await import(file)) as { price: string; word: RegExp };
  expect(price).toBe('5 € 1');
  expect(word.test('kü')).toBe(true);
});
