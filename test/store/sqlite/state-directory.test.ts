import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ReserveFile } from '../../../src/store/sqlite/reserve.ts';
import { StateDirectoryRefused } from '../../../src/store/sqlite/faults.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { replaceFile } from '../../../src/store/sqlite/files/private-file.ts';
import { createTestStore } from '../../support/builders/store-builders.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const isRoot = process.getuid?.() === 0;
const stranger = 54_321;

/** Why the directory is refused; null when it is taken. */
function refusalOf(directory: string): string | null {
  try {
    openStore({ directory })[Symbol.dispose]();
    return null;
  } catch (error) {
    if (error instanceof StateDirectoryRefused) return error.message;
    throw error;
  }
}

/** A state directory that was in use. */
function usedDirectory(path: string): string {
  const directory = join(path, 'state');
  openStore({ directory })[Symbol.dispose]();
  for (const name of ['admin.token', 'api.key', 'listen.json']) {
    writeFileSync(join(directory, name), 'text', { mode: 0o600 });
  }
  return directory;
}

test.runIf(isRoot)(
  'a state directory of another user is refused, also by root, with how to go on (skipped when not root)',
  async () => {
    await using temporary = temporaryDirectory();
    const directory = usedDirectory(temporary.path);
    chownSync(directory, stranger, stranger);
    expect(refusalOf(directory)).toBe(
      `The state directory ${directory} is refused: it belongs to user ${stranger}, and this is user 0: ` +
        `run this as that user (sudo -u '#${stranger}'), or choose another directory.`,
    );
  },
);

test.for([0o770, 0o707, 0o777, 0o1777])(
  'a state directory that other users can write (%o) is refused, with how to go on',
  async (mode) => {
    await using temporary = temporaryDirectory();
    const directory = usedDirectory(temporary.path);
    chmodSync(directory, mode);
    expect(refusalOf(directory)).toBe(
      `The state directory ${directory} is refused: other users can write to it: chmod go-w ${directory}, or choose a new directory inside it.`,
    );
    chmodSync(directory, 0o755);
    expect(refusalOf(directory)).toBeNull();
  },
);

test.for(['latchkey.db', 'latchkey.lock', 'latchkey.reserve', 'admin.token', 'listen.json'])(
  'a directory or a pipe in the place of %s is refused, with how to go on',
  async (name) => {
    await using temporary = temporaryDirectory();
    const directory = usedDirectory(temporary.path);
    const path = join(directory, name);
    const refused = `The state directory ${directory} is refused: ${name} in it is not a regular file: move it elsewhere.`;
    rmSync(path, { force: true });
    mkdirSync(path, { mode: 0o700 });
    expect(refusalOf(directory)).toBe(refused);
    rmdirSync(path);
    execFileSync('mkfifo', ['-m', '600', path]);
    expect(refusalOf(directory)).toBe(refused);
  },
);

test('a state directory may lie where everybody writes, and be named by a link of its own user', async () => {
  await using temporary = temporaryDirectory();
  chmodSync(temporary.path, 0o1777);
  const directory = usedDirectory(temporary.path);
  const link = join(temporary.path, 'link');
  symlinkSync(directory, link);
  expect(refusalOf(directory)).toBeNull();
  expect(refusalOf(link)).toBeNull();
});

test.runIf(isRoot)(
  'a link to it that another user can change is refused (skipped when not root)',
  async () => {
    await using temporary = temporaryDirectory();
    const directory = usedDirectory(temporary.path);
    const link = join(temporary.path, 'link');
    symlinkSync(directory, link);
    lchownSync(link, stranger, stranger);
    expect(refusalOf(link)).toContain(`it is a link of user ${stranger}`);
  },
);

const files = ['latchkey.db', 'latchkey.lock', 'admin.token', 'api.key', 'listen.json'];

test.for([...files, 'latchkey.db-wal', 'latchkey.reserve', 'backup.new'])(
  '%s in it that is a link is refused, and what it leads to left alone',
  async (name) => {
    await using temporary = temporaryDirectory();
    const directory = usedDirectory(temporary.path);
    const path = join(directory, name);
    const elsewhere = join(temporary.path, 'elsewhere');
    if (files.includes(name)) renameSync(path, elsewhere);
    else writeFileSync(elsewhere, 'precious');
    const before = readFileSync(elsewhere);
    symlinkSync(elsewhere, path);
    expect(refusalOf(directory)).toBe(
      `The state directory ${directory} is refused: ${name} in it is a link: put the file itself there, or remove it.`,
    );
    expect(readFileSync(elsewhere).equals(before)).toBe(true);
  },
);

test.runIf(isRoot).for(files)('%s in it of another user is refused (skipped when not root)', async (name) => {
  await using temporary = temporaryDirectory();
  const directory = usedDirectory(temporary.path);
  chownSync(join(directory, name), stranger, stranger);
  expect(refusalOf(directory)).toBe(
    `The state directory ${directory} is refused: ${name} in it belongs to user ${stranger}: remove it, or change its owner.`,
  );
});

test.for(files)('%s in it that other users can write is refused', async (name) => {
  await using temporary = temporaryDirectory();
  const directory = usedDirectory(temporary.path);
  const path = join(directory, name);
  chmodSync(path, 0o620);
  expect(refusalOf(directory)).toBe(
    `The state directory ${directory} is refused: other users can write ${name} in it: chmod 0600 ${path}`,
  );
});

test("files that are not the daemon's own may be links", async () => {
  await using temporary = temporaryDirectory();
  const directory = usedDirectory(temporary.path);
  writeFileSync(join(temporary.path, 'secret'), 'text');
  symlinkSync(join(temporary.path, 'secret'), join(directory, 'product.secret'));
  expect(refusalOf(directory)).toBeNull();
});

test('a file that is made takes the place of a link, and does not follow it', async () => {
  await using store = createTestStore();
  const precious = join(store.directory, 'precious');
  writeFileSync(precious, 'text');
  for (const name of ['listen.json', 'listen.json.new', 'latchkey.reserve']) {
    symlinkSync(precious, join(store.directory, name));
  }
  replaceFile(join(store.directory, 'listen.json'), 'other');
  const reserve = new ReserveFile(store.directory, () => Buffer.alloc(1024 * 1024, 1));
  expect(reserve.take()).toBe(true);
  expect(readFileSync(precious, 'utf8')).toBe('text');
  expect(readFileSync(join(store.directory, 'listen.json'), 'utf8')).toBe('other');
  for (const name of ['listen.json', 'latchkey.reserve']) {
    const status = lstatSync(join(store.directory, name));
    expect([name, status.isFile(), status.mode & 0o777]).toEqual([name, true, 0o600]);
  }
});
