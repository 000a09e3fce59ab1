#!/usr/bin/env node
// The `bin` of the package, in JavaScript for any Node since 16. It starts the program, and if this Node is too old, with
// the Node that is installed as an npm package. `npm run build` copies this file.
import * as module from 'node:module';
import { constants, homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// First of all: Node would open its debugger at this signal.
process.on('SIGUSR1', () => undefined);

// An import would read every export, and load the code behind each.
const { existsSync, readFileSync } = module.createRequire(import.meta.url)('node:fs');
const launcher = fileURLToPath(import.meta.url);
const here = dirname(launcher);
const root = join(here, '../..');
const main = ['main.ts', 'main.js'].map((name) => join(here, name)).find((file) => existsSync(file));
/** For a Node of Latchkey alone, beside the folder `node_modules`: the `node` of the user stays as it is. */
const ownFolder = basename(dirname(root)) === 'node_modules' ? join(root, '../../latchkey-node') : null;
const needed = /\d+\.\d+/.exec(readJson(join(root, 'package.json')).engines.node)[0];

/** Set if another launcher started this one. The IPC channel closes when the other launcher ends. */
const followedName = 'LATCHKEY_LAUNCHER';

if (isEnough(process.versions.node)) {
  if (process.env[followedName] !== undefined) endWithLauncher();
  cacheCompiledCode();
  await import(main.endsWith('.ts') ? './main.ts' : './main.js');
} else {
  const node = nodeBeside();
  if (node === null) {
    process.stderr.write(
      `latchkey: Node ${needed} or later is needed, and this is ${process.version}. ${advice()}\n`,
    );
    process.exitCode = 1;
  } else {
    await startWith(node);
  }
}

/** Keeps compiled code in the cache directory of the service or the user. In /tmp any user could replace it. */
function cacheCompiledCode() {
  try {
    const { CACHE_DIRECTORY: ofService = '', XDG_CACHE_HOME: ofUser = '' } = process.env;
    const ofUsers = () => join(isAbsolute(ofUser) ? ofUser : join(homedir(), '.cache'), 'latchkey');
    const directory = isAbsolute(ofService) ? ofService : ofUsers();
    // With an empty HOME this would be the working directory.
    if (!isAbsolute(directory)) return;
    module.enableCompileCache(directory);
    // Threads read only this variable.
    process.env.NODE_COMPILE_CACHE ??= directory;
  } catch {
    // Without a home directory the start is a little slower.
  }
}

/** The program of an installed npm package `node`; null if it is missing or too old. */
function nodeBeside() {
  for (const folder of [here, ownFolder]) {
    if (folder === null) continue;
    try {
      const file = module.createRequire(join(folder, 'from.js')).resolve('node/package.json');
      const { version, bin } = readJson(file);
      const program = join(dirname(file), bin.node);
      if (isEnough(version) && existsSync(program)) return program;
    } catch {
      // There is none.
    }
  }
  return null;
}

/** Forwards arguments, standard streams, signals and the exit code. */
async function startWith(node) {
  const { spawn } = await import('node:child_process');
  const child = spawn(node, ['--disable-sigusr1', launcher, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [followedName]: String(process.pid) },
  });
  // Windows passes Ctrl-C to both processes, and `kill` would end the other one at once.
  const forward = process.platform === 'win32' ? () => undefined : (signal) => child.kill(signal);
  const onWindows = ['SIGINT', 'SIGBREAK', 'SIGHUP'];
  const elsewhere = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'];
  for (const signal of process.platform === 'win32' ? onWindows : elsewhere) process.on(signal, forward);
  child.on('error', (error) => {
    process.stderr.write(`latchkey: cannot start ${node}: ${error.message}\n`);
    process.exit(1);
  });
  // As shells do for a program that a signal ended.
  child.on('exit', (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code));
}

/** Ends this process when the launcher that started it was killed. */
function endWithLauncher() {
  delete process.env[followedName];
  const end = () => {
    // On Windows, `kill` would end this process without its handlers.
    if (process.platform !== 'win32') process.kill(process.pid, 'SIGTERM');
    else if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(1);
  };
  if (!process.connected) end();
  process.once('disconnect', end);
  // The channel must not keep a command running.
  process.channel?.unref();
}

/**
 * The command that installs a newer Node: for a clone, a project, or a global package. A global package `node` would replace
 * the `node` of the user. An install script of the npm package `node` downloads the program, so scripts must be on.
 */
function advice() {
  const flag = '--ignore-scripts=false';
  if (existsSync(join(root, 'package-lock.json'))) return `Run in ${root}: npm ci ${flag}`;
  const prefix = dirname(dirname(root));
  if (existsSync(join(prefix, 'package.json'))) return `Run in ${prefix}: npm install ${flag} node@26`;
  return `Run: npm install --prefix ${ownFolder ?? prefix} ${flag} node@26`;
}

function isEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  const [neededMajor, neededMinor] = needed.split('.').map(Number);
  return major > neededMajor || (major === neededMajor && minor >= neededMinor);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
