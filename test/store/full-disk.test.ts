import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { prepareCommitter, type CommandOutcome } from '../../src/store/commit.ts';
import { openReading, openWriting } from '../../src/store/connection.ts';
import { StateDirectoryUnusable } from '../../src/store/faults.ts';
import { openStore } from '../../src/store/open.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Disk = AsyncDisposable & { path: string };

/** A file system of a few MiB; null where this process may not mount one. */
function smallDisk(kib: number): Disk | null {
  const temporary = temporaryDirectory();
  const path = join(temporary.path, 'disk');
  mkdirSync(path);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', path]).status === 0;
  const disk = {
    path,
    async [Symbol.asyncDispose]() {
      if (mounted) spawnSync('umount', ['-l', path]);
      await temporary[Symbol.asyncDispose]();
    },
  };
  if (mounted) return disk;
  void disk[Symbol.asyncDispose]();
  return null;
}

/** Takes all the room there is but `leftKib`. */
function fill(path: string, leftKib: number): void {
  const room = join(path, 'room');
  writeFileSync(room, Buffer.alloc(leftKib * 1024));
  try {
    for (;;) appendFileSync(join(path, 'filler'), Buffer.alloc(4096));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    rmSync(room);
  }
}

type Write = { name: string; kib: number };

function write(transaction: Transaction, { name, kib }: Write): string {
  transaction.settings.set(name, 'x'.repeat(kib * 1024));
  return 'written';
}

function faults(outcomes: readonly CommandOutcome[]): unknown[] {
  return outcomes.map((outcome) => {
    if ('result' in outcome) return outcome.result;
    return outcome.error instanceof StorageError ? outcome.error.fault : outcome.error;
  });
}

const mountable = smallDisk(64);
await mountable?.[Symbol.asyncDispose]();

/* Large enough to overflow SQLite's page cache (2 MiB) in mid-transaction, or found only by COMMIT. */
test.skipIf(mountable === null).for([512, 6000])(
  'a full disk refuses what does not fit (%i KiB), takes what does, and passes (skipped where nothing may be mounted)',
  async (kib) => {
    await using disk = smallDisk(4096);
    if (disk === null) throw new Error('mounting worked a moment ago');
    const directory = join(disk.path, 'state');
    using store = openStore({ directory });
    using writing = openWriting(store.databasePath);
    using reading = openReading(store.databasePath);
    const committer = prepareCommitter<Write>(writing, { run: write, isRefusal: () => false });
    expect(faults(committer.commitBatch([{ name: 'before', kib: 1 }]))).toEqual(['written']);

    fill(disk.path, 256);
    const batch = [
      { name: 'a', kib: 1 },
      { name: 'large', kib },
      { name: 'b', kib: 1 },
    ];
    expect(faults(committer.commitBatch(batch))).toEqual(['written', 'full', 'written']);
    fill(disk.path, 0);
    expect(faults(committer.commitBatch([{ name: 'large', kib }]))).toEqual(['full']);
    expect(reading.reader.settings.get('before')).toHaveLength(1024);
    expect(reading.reader.settings.get('b')).toHaveLength(1024);
    expect(reading.reader.settings.get('large')).toBeNull();
    expect(committer.broken).toBeNull();

    rmSync(join(disk.path, 'filler'));
    expect(faults(committer.commitBatch([{ name: 'large', kib: 512 }]))).toEqual(['written']);
    expect(writing.database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  },
);

test.skipIf(mountable === null)(
  'a state directory without room for a database is unusable (skipped where nothing may be mounted)',
  async () => {
    await using disk = smallDisk(64);
    if (disk === null) throw new Error('mounting worked a moment ago');
    const directory = disk.path;
    expect(() => openStore({ directory })).toThrow(StateDirectoryUnusable);
  },
);

test.skipIf(mountable === null)(
  'a state directory that cannot be written is unusable (skipped where nothing may be mounted)',
  async () => {
    await using disk = smallDisk(4096);
    if (disk === null) throw new Error('mounting worked a moment ago');
    const directory = disk.path;
    openStore({ directory })[Symbol.dispose]();
    expect(spawnSync('mount', ['-o', 'remount,ro', directory]).status).toBe(0);
    expect(() => openStore({ directory })).toThrow(StateDirectoryUnusable);
  },
);
