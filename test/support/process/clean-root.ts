import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Program } from './command-line.ts';
import { serveBy, type DaemonProcess } from './daemon-process.ts';
import { hasProgram } from './installed.ts';
import { buildOnce } from '../build-once.ts';
import { temporaryDirectory } from '../temporary.ts';

/** What a clean root needs and is not here; null: one can be made. */
export const missingForCleanRoot: string | null = findMissing();

function findMissing(): string | null {
  if (process.platform !== 'linux') return 'Linux';
  if (process.getuid?.() !== 0) return 'root';
  if (!hasProgram('debootstrap')) return 'debootstrap';
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? null : 'the right to mount';
}

/** What a command said, both streams together, and how it ended. */
export interface Ran {
  readonly code: number | null;
  readonly said: string;
}

/** A Debian of its own, as it is before anything is installed, in which processes run by chroot. */
export interface CleanRoot extends AsyncDisposable {
  readonly path: string;
  run(...command: string[]): Promise<Ran>;
  /** Runs a daemon in it, with the network of this machine; resolves when it is ready. */
  serve(...command: string[]): Promise<DaemonProcess>;
}

/** Every process has mounts of its own, which end with it: none is left on this machine. */
const enter: Program = [
  'unshare',
  '--mount',
  'sh',
  '-c',
  'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"',
];

/** Unpacks a Debian bookworm of the packages without which there is none; the first one of a day takes a minute. */
export function makeCleanRoot(): CleanRoot {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'root');
  mkdirSync(path);
  execFileSync('tar', ['--numeric-owner', '-C', path, '-xpf', cleanRootArchive()]);
  return {
    path,
    run: (...command) => {
      const [file, ...argv]: Program = [...enter, path, ...command];
      const { promise, resolve } = Promise.withResolvers<Ran>();
      const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', DEBIAN_FRONTEND: 'noninteractive' };
      const child = execFile(file, argv, { env }, (_error, out, err) => {
        resolve({ code: child.exitCode, said: out + err });
      });
      return promise;
    },
    serve: (...command) => serveBy([...enter, path, ...command]),
    [Symbol.asyncDispose]: async () => {
      rmSync(path, { recursive: true, force: true });
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** Built again each day, because its package lists become outdated. */
function cleanRootArchive(): string {
  return buildOnce('clean-root', new Date().toISOString().slice(0, 10), (archive) => {
    const directory = mkdtempSync(join(tmpdir(), 'latchkey-'));
    // Not the directory itself, which only its owner may enter.
    const path = join(directory, 'root');
    try {
      const made = spawnSync('debootstrap', ['--variant=minbase', 'bookworm', path], { encoding: 'utf8' });
      if (made.status !== 0)
        throw new Error(`debootstrap ended with ${made.status}: ${made.stdout.slice(-2000)}`);
      execFileSync('tar', ['--numeric-owner', '-C', path, '-cf', archive, '.']);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
}
