import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Program } from './command-line.ts';
import { serveBy, type DaemonProcess } from './daemon-process.ts';
import { hasProgram } from './installed.ts';
import { buildOnce } from '../build-once.ts';
import { temporaryDirectory } from '../temporary.ts';

/** What this machine lacks to make a clean root; null: nothing. */
export const missingForCleanRoot: string | null = findMissing();

function findMissing(): string | null {
  if (process.platform !== 'linux') return 'Linux';
  if (process.getuid?.() !== 0) return 'root';
  if (!hasProgram('debootstrap')) return 'debootstrap';
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? null : 'the right to mount';
}

/** The output of a command, both streams together, and its exit code. */
export interface Ran {
  readonly code: number | null;
  readonly said: string;
}

/** A fresh Debian installation in a folder, in which processes run by chroot. */
export interface CleanRoot extends AsyncDisposable {
  readonly path: string;
  run(...command: string[]): Promise<Ran>;
  /** Runs a daemon in the root, with the network of this machine. Resolves when the daemon is ready. */
  serve(...command: string[]): Promise<DaemonProcess>;
}

/** Every process has its own mounts, which end with it, so that no mount is left on this machine. */
const enter: Program = [
  'unshare',
  '--mount',
  'sh',
  '-c',
  'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"',
];

/** Unpacks a minimal Debian bookworm. The first call of a day takes a minute. */
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
    // A subdirectory, because only the owner may enter the temporary directory itself.
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
