import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { StorageError } from '../../../src/service/ports.ts';
import {
  ReserveFile,
  freeSpaceToStart,
  openWithReserve,
  ReservedCommitter,
} from '../../../src/store/sqlite/reserve.ts';
import type { CommandOutcome, Committer } from '../../../src/store/sqlite/commit.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { canMount, smallDisk } from '../../support/process/small-disk.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const mebibyte = 1024 * 1024;
const filling = (): Uint8Array => Buffer.alloc(mebibyte, 7);

/** Commits everything, but for what is called large while the reserve is there to be given back. */
function committerOn(reserve: ReserveFile): Committer<string> & { readonly batches: string[][] } {
  const batches: string[][] = [];
  return {
    batches,
    broken: null,
    async commitBatch(commands) {
      batches.push([...commands]);
      return commands.map((command): CommandOutcome =>
        command.includes('large') && reserve.isTaken
          ? { error: new StorageError('full', null) }
          : { result: command },
      );
    },
  };
}

function toldBy(outcomes: readonly CommandOutcome[]): unknown[] {
  return outcomes.map((outcome) => ('result' in outcome ? outcome.result : 'full'));
}

test('on a full disk the reserve is given back, what is essential is done again, and the rest refused in its place', async () => {
  await using directory = temporaryDirectory();
  const reserve = new ReserveFile(directory.path, filling);
  expect(reserve.take()).toBe(true);
  const inner = committerOn(reserve);
  const committer = new ReservedCommitter(inner, reserve, (command) => command.startsWith('essential'));

  expect(toldBy(await committer.commitBatch(['a', 'essential']))).toEqual(['a', 'essential']);
  const mixed = ['a', 'large', 'essential large', 'essential', 'large'];
  expect(toldBy(await committer.commitBatch(mixed))).toEqual([
    'a',
    'full',
    'essential large',
    'essential',
    'full',
  ]);
  expect(committer.isFull).toBe(true);
  expect(existsSync(join(directory.path, 'latchkey.reserve'))).toBe(false);

  inner.batches.length = 0;
  expect(toldBy(await committer.commitBatch(['a', 'essential', 'b']))).toEqual(['full', 'essential', 'full']);
  expect(inner.batches).toEqual([['essential']]);
  reserve.take();
  expect(toldBy(await committer.commitBatch(['a']))).toEqual(['a']);
});

test('the reserve of a process before is taken over; one that was cut short is written anew', async () => {
  await using directory = temporaryDirectory();
  const path = join(directory.path, 'latchkey.reserve');
  new ReserveFile(directory.path, filling).take();
  expect([statSync(path).size, statSync(path).mode & 0o777]).toEqual([8 * mebibyte, 0o600]);
  expect(new ReserveFile(directory.path, filling).isTaken).toBe(true);
  writeFileSync(path, 'cut short');
  const reserve = new ReserveFile(directory.path, filling);
  expect(reserve.isTaken).toBe(false);
  expect([reserve.take(), statSync(path).size]).toEqual([true, 8 * mebibyte]);
});

test.runIf(canMount)(
  'a disk with too little room has no reserve, and one that was filled gives it back at the start (skipped where nothing may be mounted)',
  async () => {
    await using disk = smallDisk(16 * 1024);
    disk.fill(9 * 1024);
    expect(new ReserveFile(disk.path, filling).take()).toBe(false);
    disk.clear();
    expect(new ReserveFile(disk.path, filling).take()).toBe(true);
    freeSpaceToStart(disk.path);
    expect(new ReserveFile(disk.path, filling).isTaken).toBe(true);
    disk.fill(512);
    freeSpaceToStart(disk.path);
    expect(new ReserveFile(disk.path, filling).isTaken).toBe(false);
  },
);

test('a store that does not open for want of room is opened once more without the reserve', async () => {
  await using directory = temporaryDirectory();
  const reserve = (): boolean => new ReserveFile(directory.path, filling).isTaken;
  new ReserveFile(directory.path, filling).take();
  const opened: boolean[] = [];
  const open = (errcode: number): void => {
    opened.push(reserve());
    if (reserve()) throw Object.assign(new Error('from SQLite'), { errcode });
  };
  expect(() => openWithReserve(directory.path, () => open(11))).toThrow('from SQLite');
  // A quota refuses a page that is shared with other processes.
  openWithReserve(directory.path, () => open(4874));
  expect(opened).toEqual([true, true, false]);
  const fails = (): never => {
    throw Object.assign(new Error('for good'), { errcode: 13 });
  };
  expect(() => openWithReserve(directory.path, fails)).toThrow('for good');
});

test.runIf(canMount)(
  'whether a disk has room for a little more is tried (skipped where nothing may be mounted)',
  async () => {
    await using disk = smallDisk(16 * 1024);
    const reserve = new ReserveFile(disk.path, filling);
    expect(reserve.isOutOfSpace()).toBe(false);
    disk.fill(1024);
    expect(reserve.isOutOfSpace()).toBe(true);
    expect(readdirSync(disk.path)).toEqual(['filler']);
  },
);

test('a state directory where none can be made is refused, and does not hang', async () => {
  expect(() => openStore({ directory: '/proc/latchkey/state' })).toThrow('cannot be used');
  await using directory = temporaryDirectory();
  const deep = join(directory.path, 'a/b/c');
  openStore({ directory: deep })[Symbol.dispose]();
  expect(statSync(deep).mode & 0o777).toBe(0o700);
  mkdirSync(join(directory.path, 'there'));
  openStore({ directory: join(directory.path, 'there') })[Symbol.dispose]();
});
