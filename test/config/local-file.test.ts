import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkLocalFile, type LocalFile } from '../../src/config/file/configuration-file.ts';

const me = process.getuid?.() ?? -1;
const stranger = 54_321;
const isRoot = me === 0;

let directory = '';
let file = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-local-'));
  file = join(directory, 'latchkey.yaml');
  writeFileSync(file, '', { mode: 0o600 });
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const judge = (): LocalFile => checkLocalFile(file, me);

test('a file that only this user can write is used', () => {
  expect(judge()).toBe('safe');
  chmodSync(file, 0o644);
  expect(judge()).toBe('safe');
});

test('a missing file and an unreadable directory count as absent', () => {
  rmSync(file);
  expect(judge()).toBe('absent');
  expect(checkLocalFile(join(file, 'beyond', 'latchkey.yaml'), me)).toBe('absent');
});

test('a file that all users can write is not used', () => {
  chmodSync(file, 0o606);
  expect(judge()).toEqual({ unsafe: 'other users can write to it' });
});

test('a file in a world-writable directory is not used', () => {
  chmodSync(directory, 0o1777);
  expect(judge()).toEqual({ unsafe: 'other users can write to its directory' });
});

test('a directory in place of the file is not used', () => {
  rmSync(file);
  mkdirSync(file, { mode: 0o700 });
  expect(judge()).toEqual({ unsafe: 'it is not a regular file' });
});

test('a link is followed only to a file that only this user can write', () => {
  const target = join(directory, 'target.yaml');
  rmSync(file);
  symlinkSync(target, file);
  expect(judge()).toEqual({ unsafe: 'no such file or directory' });
  writeFileSync(target, '', { mode: 0o600 });
  expect(judge()).toBe('safe');
  chmodSync(target, 0o602);
  expect(judge()).toEqual({ unsafe: 'other users can write to it' });
});

test.skipIf(!isRoot)('a user uses a file of root, but root does not use a file of a user', () => {
  expect(checkLocalFile(file, stranger)).toBe('safe');
  chownSync(file, stranger, stranger);
  expect(judge()).toEqual({ unsafe: `it belongs to user ${stranger}, and this is user 0` });
  expect(checkLocalFile(file, stranger)).toBe('safe');
});

test.skipIf(!isRoot)('no file is used in the directory of another user', () => {
  chownSync(directory, stranger, stranger);
  expect(judge()).toEqual({ unsafe: `its directory belongs to user ${stranger}, and this is user 0` });
});

test.skipIf(!isRoot)('a link of another user is not followed, even to a file of this user', () => {
  const target = join(directory, 'target.yaml');
  writeFileSync(target, '', { mode: 0o600 });
  rmSync(file);
  symlinkSync(target, file);
  lchownSync(file, stranger, stranger);
  expect(judge()).toEqual({ unsafe: `the link belongs to user ${stranger}, and this is user 0` });
});

test.skipIf(!isRoot)(
  'a file is used if it is writable by the private group of its owner, but not by any other group',
  () => {
    chmodSync(file, 0o660);
    chownSync(file, stranger, stranger);
    expect(checkLocalFile(file, stranger)).toBe('safe');
    chownSync(file, stranger, 100);
    expect(checkLocalFile(file, stranger)).toEqual({ unsafe: 'other users can write to it' });
    chmodSync(file, 0o640);
    expect(checkLocalFile(file, stranger)).toBe('safe');
  },
);
