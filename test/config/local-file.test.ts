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
import { judgeLocalFile, type LocalFile } from '../../src/config/file/local-file.ts';

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

const judge = (): LocalFile => judgeLocalFile(file, me);

test('a file that only this user can write is taken', () => {
  expect(judge()).toBe('safe');
  chmodSync(file, 0o644);
  expect(judge()).toBe('safe');
});

test('no file is no reason to say anything, nor is a directory that cannot be looked into', () => {
  rmSync(file);
  expect(judge()).toBe('absent');
  expect(judgeLocalFile(join(file, 'beyond', 'latchkey.yaml'), me)).toBe('absent');
});

test('a file that everybody can write is not taken', () => {
  chmodSync(file, 0o606);
  expect(judge()).toEqual({ distrust: 'other users can write to it' });
});

test('a file in a directory like /tmp is not taken, whoever it belongs to', () => {
  chmodSync(directory, 0o1777);
  expect(judge()).toEqual({ distrust: 'other users can write to its directory' });
});

test('what is no file is not taken', () => {
  rmSync(file);
  mkdirSync(file, { mode: 0o700 });
  expect(judge()).toEqual({ distrust: 'it is not a regular file' });
});

test('a link is followed to what this user alone can write, and nowhere else', () => {
  const target = join(directory, 'target.yaml');
  rmSync(file);
  symlinkSync(target, file);
  expect(judge()).toEqual({ distrust: 'no such file or directory' });
  writeFileSync(target, '', { mode: 0o600 });
  expect(judge()).toBe('safe');
  chmodSync(target, 0o602);
  expect(judge()).toEqual({ distrust: 'other users can write to it' });
});

test('Windows has no such bits', () => {
  chmodSync(file, 0o666);
  expect(judgeLocalFile(file, null)).toBe('safe');
});

test.skipIf(!isRoot)('a user takes what is root’s, root does not take what is a user’s', () => {
  expect(judgeLocalFile(file, stranger)).toBe('safe');
  chownSync(file, stranger, stranger);
  expect(judge()).toEqual({ distrust: `it belongs to user ${stranger}, and this is user 0` });
  expect(judgeLocalFile(file, stranger)).toBe('safe');
});

test.skipIf(!isRoot)('in the directory of another user nothing is taken, not even what is one’s own', () => {
  chownSync(directory, stranger, stranger);
  expect(judge()).toEqual({ distrust: `its directory belongs to user ${stranger}, and this is user 0` });
});

test.skipIf(!isRoot)('a link that another user made is not followed, also to one’s own file', () => {
  const target = join(directory, 'target.yaml');
  writeFileSync(target, '', { mode: 0o600 });
  rmSync(file);
  symlinkSync(target, file);
  lchownSync(file, stranger, stranger);
  expect(judge()).toEqual({ distrust: `the link belongs to user ${stranger}, and this is user 0` });
});

test.skipIf(!isRoot)(
  'a group may write that has its user’s number and is therefore of that user alone; another may read',
  () => {
    chmodSync(file, 0o660);
    chownSync(file, stranger, stranger);
    expect(judgeLocalFile(file, stranger)).toBe('safe');
    chownSync(file, stranger, 100);
    expect(judgeLocalFile(file, stranger)).toEqual({ distrust: 'other users can write to it' });
    chmodSync(file, 0o640);
    expect(judgeLocalFile(file, stranger)).toBe('safe');
  },
);
