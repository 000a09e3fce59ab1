#!/usr/bin/env node
// The `bin` of the package, in plain JavaScript that any Node since 16 can read: it starts the program, with the
// Node that is installed beside it where this one is too old. `npm run build` copies it as it is.
import * as module from 'node:module';
import { constants, homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Before anything else: Node would open its debugger at this signal.
process.on('SIGUSR1', () => undefined);

// An import would read every export of it, and so load what lies behind each.
const { existsSync, readFileSync } = module.createRequire(import.meta.url)('node:fs');
const launcher = fileURLToPath(import.meta.url);
const here = dirname(launcher);
const root = join(here, '../..');
const main = ['main.ts', 'main.js'].map((name) => join(here, name)).find((file) => existsSync(file));
const needed = /\d+\.\d+/.exec(readJson(join(root, 'package.json')).engines.node)[0];

/** By this variable a launcher knows that another one has started it, over whose channel it hears that the other ends. */
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

/** Keeps compiled code in the cache directory of the service or the user: anybody could put code into one in /tmp. */
function cacheCompiledCode() {
  try {
    const { CACHE_DIRECTORY: ofService = '', XDG_CACHE_HOME: ofUser = '' } = process.env;
    const ofUsers = () => join(isAbsolute(ofUser) ? ofUser : join(homedir(), '.cache'), 'latchkey');
    const directory = isAbsolute(ofService) ? ofService : ofUsers();
    // An empty HOME would put it into the working directory.
    if (!isAbsolute(directory)) return;
    module.enableCompileCache(directory);
    // Threads find it by this alone.
    process.env.NODE_COMPILE_CACHE ??= directory;
  } catch {
    // Without a home directory it starts a little slower.
  }
}

/** The program of the npm package `node` that this package finds as it finds any other; null: none that is enough. */
function nodeBeside() {
  try {
    const file = module.createRequire(import.meta.url).resolve('node/package.json');
    const { version, bin } = readJson(file);
    const program = join(dirname(file), bin.node);
    return isEnough(version) && existsSync(program) ? program : null;
  } catch {
    return null;
  }
}

/** Passes everything on: arguments, standard streams, signals, and how it ended. */
async function startWith(node) {
  const { spawn } = await import('node:child_process');
  const child = spawn(node, ['--disable-sigusr1', launcher, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [followedName]: String(process.pid) },
  });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('error', (error) => {
    process.stderr.write(`latchkey: ${node} cannot be started: ${error.message}\n`);
    process.exit(1);
  });
  // A signal that ended the program is told as shells tell it.
  child.on('exit', (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code));
}

/** Ends in order when the launcher that started this process was killed: nothing else would ever end it. */
function endWithLauncher() {
  delete process.env[followedName];
  const end = () => process.kill(process.pid, 'SIGTERM');
  if (!process.connected) end();
  process.once('disconnect', end);
  // Waiting for that does not keep a command running.
  process.channel?.unref();
}

/**
 * What puts such a Node beside this package, which lies in a clone, in a project, or among the global ones.
 * A script of the package `node` brings its program, also where npm is told to run none.
 */
function advice() {
  const flag = '--ignore-scripts=false';
  if (existsSync(join(root, 'package-lock.json'))) return `Run in ${root}: npm ci ${flag}`;
  const prefix = dirname(dirname(root));
  if (existsSync(join(prefix, 'package.json'))) return `Run in ${prefix}: npm install ${flag} node@26`;
  const where = basename(prefix) === 'lib' ? `--prefix ${dirname(prefix)} ` : '';
  return `Run: npm install --global ${where}${flag} node@26`;
}

function isEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  const [neededMajor, neededMinor] = needed.split('.').map(Number);
  return major > neededMajor || (major === neededMajor && minor >= neededMinor);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
