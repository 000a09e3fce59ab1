/**
 * Builds `dist/executable/latchkey`: Latchkey and the Node that runs this script in one file, by Node's own
 * single-executable build (https://nodejs.org/api/single-executable-applications.html). It needs neither Node
 * nor npm, only the C and C++ libraries that Node itself needs. `npm run build:executable` calls it.
 *
 * What the program reads beside itself lies in the file as an asset, by its name: the code of each thread
 * (`daemon/threads/start-worker.ts`), package.json (`config/version.ts`) and the viewer of the reference
 * (`http/viewer-file.ts`). Whatever else is to be read beside the program has to be added to these.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { viewerFiles, viewerPath } from '../http/viewer-file.ts';
import { bundle, workers, workerSource } from './bundle.ts';

const root = join(import.meta.dirname, '../..');
const output = join(root, 'dist/executable/latchkey');

const workshop = mkdtempSync(join(tmpdir(), 'latchkey-executable-'));
try {
  const main = await bundleOne('src/cli/main.ts');
  const assets: Record<string, string> = { 'package.json': join(root, 'package.json') };
  for (const worker of workers) assets[`${worker}.js`] = await bundleOne(workerSource(worker));
  for (const name of viewerFiles) assets[name] = viewerPath(name);
  mkdirSync(dirname(output), { recursive: true });
  combine({ main, assets, executable: strippedNode() });
} finally {
  rmSync(workshop, { recursive: true });
}

/** Puts an entry point and all that it imports into one file; gives its path. */
async function bundleOne(entry: string): Promise<string> {
  const file = join(workshop, basename(entry).replace('.ts', '.js'));
  await bundle(entry, { file, codeSplitting: false });
  return file;
}

/** A copy of this Node without its symbols, which are a quarter of it; as it is where nothing can strip it. */
function strippedNode(): string {
  const copy = join(workshop, 'node');
  copyFileSync(process.execPath, copy);
  const { error } = spawnSync('strip', [copy], { stdio: 'inherit' });
  if (error !== undefined) process.stderr.write('There is no strip (binutils): the executable is larger.\n');
  return copy;
}

type Parts = { main: string; assets: Record<string, string>; executable: string };

function combine(parts: Parts): void {
  const file = join(workshop, 'configuration.json');
  const settings = {
    mainFormat: 'module',
    useCodeCache: true,
    disableExperimentalSEAWarning: true,
    // What `daemon/system/heap.ts` cannot do for the first thread; and SIGUSR1 opens no debugger from the start.
    execArgv: ['--max-semi-space-size=4', '--disable-sigusr1'],
    // NODE_OPTIONS is ignored: it could open a debugger, or write out what the process knows.
    execArgvExtension: 'none',
  };
  const built = join(workshop, 'latchkey');
  writeFileSync(file, JSON.stringify({ ...parts, ...settings, output: built }));
  const { status } = spawnSync(process.execPath, ['--build-sea', file], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`node --build-sea ended with ${status}`);
  // Copied, as an installed one is: Node writes it at once, which Linux keeps, and counts as resident, in large pieces.
  // And the one that is there may be running.
  copyFileSync(built, `${output}.new`);
  renameSync(`${output}.new`, output);
}
