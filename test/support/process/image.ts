import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeCleanRoot, type CleanRoot } from './clean-root.ts';
import { serveBy, type DaemonProcess } from './daemon-process.ts';
import { machineEnvironment, machinePath } from './npm.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../temporary.ts';

const repository = join(import.meta.dirname, '../../..');
const dockerfile = readFileSync(join(repository, 'examples/Dockerfile'), 'utf8');
const [build = '', image = ''] = dockerfile.split(/^(?=FROM )/m).slice(1);

/**
 * Builds the image of `examples/Dockerfile` without Docker: runs the commands of both stages in folders of
 * this machine.
 */
export async function makeImage(): Promise<Image> {
  const place = temporaryDirectory();
  const context = join(place.path, 'build');
  for (const path of wordsOf(build, /^COPY (.+) \S+$/gm)) {
    cpSync(join(repository, path), join(context, path), { recursive: true });
  }
  // The base image contains Node and npm. Packages of this machine replace those of Debian.
  const env = machineEnvironment(place.path);
  env['PATH'] = `${dirname(process.execPath)}:${machinePath}`;
  for (const command of commandsOf(build).filter((each) => !each.startsWith('apt-get '))) {
    execFileSync('bash', ['-c', command], { cwd: context, env, stdio: 'pipe' });
  }
  const clean = makeCleanRoot();
  for (const command of commandsOf(image)) {
    const { code, said } = await clean.run('sh', '-c', command);
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${said}`);
  }
  const [from = '', to = ''] = wordsOf(image, /^COPY --from=build \/build\/(.+)$/gm);
  cpSync(join(context, from), join(clean.path, to));
  // A new named volume starts with the image's files at its place.
  const state = join(place.path, 'state');
  execFileSync('cp', ['--archive', join(clean.path, 'var/lib/latchkey'), state]);
  return new Image(place, clean, state);
}

/** The image and its state volume. Use `makeImage`. */
export class Image implements AsyncDisposable {
  readonly #place: TemporaryDirectory;
  readonly #clean: CleanRoot;
  readonly #state: string;

  constructor(place: TemporaryDirectory, clean: CleanRoot, state: string) {
    this.#place = place;
    this.#clean = clean;
    this.#state = state;
  }

  /** Adds a file that only the image's user can read. */
  addPrivately(from: string, to: string): void {
    const file = join(this.#clean.path, to);
    mkdirSync(dirname(file), { recursive: true });
    execFileSync('install', ['-o', '1000', '-g', '1000', '-m', '0400', from, file]);
  }

  /**
   * Starts the image as `compose.yaml` does: with the image's user, and only the state and the socket's
   * directory writable. Resolves when it is ready.
   */
  start(): Promise<DaemonProcess> {
    const mounts = [
      'mount --bind "$1" "$1"',
      'mount --bind "$2" "$1/var/lib/latchkey"',
      'mount -t tmpfs -o uid=1000,gid=1000,mode=0755 tmpfs "$1/run/latchkey"',
      'mount -t proc proc "$1/proc"',
      'mount -o remount,bind,ro "$1"',
      'root="$1"; shift 2; exec chroot --userspec=1000:1000 "$root" "$@"',
    ];
    const command = [...this.#environment(), ...listOf('ENTRYPOINT'), ...listOf('CMD')];
    const script = ['-ec', mounts.join('\n'), 'sh', this.#clean.path, this.#state, ...command];
    return serveBy(['unshare', '--mount', 'sh', ...script]);
  }

  /** Runs the health check in a started container; returns its exit code and output. */
  check(container: DaemonProcess): { status: number | null; stdout: string } {
    const into = [
      '--target',
      String(container.pid),
      '--mount',
      'chroot',
      '--userspec=1000:1000',
      this.#clean.path,
    ];
    const check = listOf('HEALTHCHECK .+ CMD');
    return spawnSync('nsenter', [...into, ...this.#environment(), ...check], { encoding: 'utf8' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#clean[Symbol.asyncDispose]();
    await this.#place[Symbol.asyncDispose]();
  }

  #environment(): string[] {
    const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    return ['env', '-i', path, 'HOME=/var/lib/latchkey', ...wordsOf(image, /^ENV (.+)$/gm)];
  }
}

function commandsOf(harness: string): string[] {
  return [...harness.matchAll(/^RUN (.+)$/gm)].map(([, command]) => command ?? '');
}

function wordsOf(harness: string, pattern: RegExp): string[] {
  return [...harness.matchAll(pattern)].flatMap(([, words]) => words?.split(' ') ?? []);
}

/** The items of an instruction in the form of a JSON list. */
function listOf(instruction: string): string[] {
  const text = new RegExp(`^${instruction} (\\[.+\\])$`, 'm').exec(image)?.[1] ?? '[]';
  return JSON.parse(text) as string[];
}
