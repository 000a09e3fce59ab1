import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { StorageError } from '../../../src/service/ports.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import { prepareCommitter, type CommandOutcome } from '../../../src/store/sqlite/commit.ts';
import { openReading, openWriting } from '../../../src/store/sqlite/connection.ts';
import { StateDirectoryUnusable } from '../../../src/store/sqlite/faults.ts';
import { latchkeySchemas, migrate } from '../../../src/store/sqlite/files/migrations.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { canMount, smallDisk } from '../../support/process/small-disk.ts';

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

/* Large enough to overflow SQLite's page cache (2 MiB) in mid-transaction, or found only by COMMIT. */
test.runIf(canMount).for([512, 6000])(
  'a full disk refuses what does not fit (%i KiB), takes what does, and passes (skipped where nothing may be mounted)',
  async (kib) => {
    await using disk = smallDisk(4096);
    const directory = join(disk.path, 'state');
    using store = openStore({ directory });
    using writing = openWriting(store.databasePath);
    using reading = openReading(store.databasePath);
    const committer = prepareCommitter<Write>(writing, { run: write, isFailure: () => false });
    expect(faults(await committer.commitBatch([{ name: 'before', kib: 1 }]))).toEqual(['written']);

    disk.fill(256);
    const batch = [
      { name: 'a', kib: 1 },
      { name: 'large', kib },
      { name: 'b', kib: 1 },
    ];
    expect(faults(await committer.commitBatch(batch))).toEqual(['written', 'full', 'written']);
    disk.fill(0);
    expect(faults(await committer.commitBatch([{ name: 'large', kib }]))).toEqual(['full']);
    expect(reading.reader.settings.get('before')).toHaveLength(1024);
    expect(reading.reader.settings.get('b')).toHaveLength(1024);
    expect(reading.reader.settings.get('large')).toBeNull();
    expect(committer.broken).toBeNull();

    disk.clear();
    expect(faults(await committer.commitBatch([{ name: 'large', kib: 512 }]))).toEqual(['written']);
    expect(writing.database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  },
);

test.runIf(canMount)(
  'a state directory without room for a database is unusable (skipped where nothing may be mounted)',
  async () => {
    await using disk = smallDisk(64);
    const directory = disk.path;
    expect(() => openStore({ directory })).toThrow(StateDirectoryUnusable);
  },
);

test.runIf(canMount)(
  'a state directory that cannot be written is unusable (skipped where nothing may be mounted)',
  async () => {
    await using disk = smallDisk(4096);
    const directory = disk.path;
    openStore({ directory })[Symbol.dispose]();
    expect(spawnSync('mount', ['-o', 'remount,ro', directory]).status).toBe(0);
    expect(() => openStore({ directory })).toThrow(StateDirectoryUnusable);
  },
);

test.runIf(canMount).for([
  ['the copy of the older database', 1024],
  ['what a step adds', 3072],
] as const)(
  'a migration without room for %s leaves the disk to the older version (skipped where nothing may be mounted)',
  async ([, leftKib]) => {
    await using disk = smallDisk(8192);
    const directory = join(disk.path, 'state');
    const { databasePath } = createSettings(directory, 2048);
    const files = readdirSync(directory);
    disk.fill(leftKib);
    const schemas = [...latchkeySchemas(), 'CREATE TABLE added AS SELECT * FROM setting;'];
    expect(() => migrate(databasePath, { schemas })).toThrow('database or disk is full');
    expect(readdirSync(directory)).toEqual(files);

    using store = openStore({ directory });
    using writing = openWriting(store.databasePath);
    const committer = prepareCommitter<Write>(writing, { run: write, isFailure: () => false });
    expect(faults(await committer.commitBatch([{ name: 'after', kib: 256 }]))).toEqual(['written']);
  },
);

/** A state directory whose database has so many KiB of settings. */
function createSettings(directory: string, kib: number): { databasePath: string } {
  using store = openStore({ directory });
  using writing = openWriting(store.databasePath);
  write(writing.transaction, { name: 'given', kib });
  return { databasePath: store.databasePath };
}
