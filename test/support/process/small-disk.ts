import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '../temporary.ts';

/** A separate file system that lives as long as its scope. */
export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Fills the disk except for `leftKib`. */
  fill(leftKib: number): void;
  /** Frees the used space. */
  clear(): void;
}

/** Whether this process may mount a file system; otherwise tests that need one are skipped. */
export const canMount: boolean = await isMountable();

async function isMountable(): Promise<boolean> {
  await using disk = mount(64);
  return disk !== null;
}

/** Mounts a file system of this size in KiB. Throws if mounting is not allowed. */
export function smallDisk(kib: number): SmallDisk {
  const disk = mount(kib);
  if (disk === null) throw new Error('mounting is not allowed here');
  return disk;
}

function mount(kib: number): SmallDisk | null {
  const temporary = temporaryDirectory();
  const path = join(temporary.path, 'disk');
  mkdirSync(path);
  const mounted =
    spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k,mode=700`, 'tmpfs', path]).status === 0;
  if (!mounted) {
    void temporary[Symbol.asyncDispose]();
    return null;
  }
  return {
    path,
    fill: (leftKib) => {
      fill(path, leftKib);
    },
    clear: () => {
      rmSync(fillerIn(path), { force: true });
    },
    async [Symbol.asyncDispose]() {
      spawnSync('umount', ['-l', path]);
      await temporary[Symbol.asyncDispose]();
    },
  };
}

function fill(path: string, leftKib: number): void {
  const room = join(path, 'room');
  writeFileSync(room, Buffer.alloc(leftKib * 1024));
  try {
    for (;;) appendFileSync(fillerIn(path), Buffer.alloc(4096));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    rmSync(room);
  }
}

function fillerIn(path: string): string {
  return join(path, 'filler');
}
