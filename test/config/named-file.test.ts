import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readNamedFile } from '../../src/config/file/named-file.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test.skipIf(process.platform === 'win32')('an endless file is an error and is not read into memory', () => {
  expect(loadConfiguration({ file: '/dev/zero', environment: {} })).toEqual({
    ok: false,
    errors: [{ key: 'file', text: 'cannot read /dev/zero: file too large', origin: 'flag' }],
  });
});

test('a file is read completely, even if a character crosses the end of a chunk', async () => {
  await using directory = temporaryDirectory();
  const path = join(directory.path, 'file');
  const text = `a${'ä'.repeat(100_000)}`;
  writeFileSync(path, text);
  expect(readNamedFile(path)).toBe(text);
  writeFileSync(path, '');
  expect(readNamedFile(path)).toBe('');
});
