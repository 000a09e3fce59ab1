/**
 * Builds in `dist` what the npm package holds: the program, with all that it imports in few files, its launcher as
 * it is, its types, and its man page. `npm run build` calls it, and so does `npm pack`.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { viewerFiles, viewerPath } from '../http/viewer-file.ts';
import { bundle, bundledModules, entries, workers, workerSource } from './bundle.ts';
import { thirdPartyNotices } from './third-party.ts';

const root = join(import.meta.dirname, '../..');
const inRoot = (path: string): string => join(root, path);

/**
 * What a start loads lies in few files, each with all that its modules import and none before it has: a file costs
 * time, however little is in it. A command loads the first three or four; `start` starts the writer's thread, which
 * begins while the server's loads `daemon`.
 */
const groups = [
  { name: 'builtins', test: /^\0node:/ },
  { name: 'program', test: /\/src\/(?:cli\/program|config\/version)\.ts$/ },
  { name: 'domain', test: /\/src\/domain\// },
  {
    name: 'configuration',
    test: /\/src\/(?:cli\/configuration\.ts$|cli\/local\/serve\.ts$|config\/|http\/wire\/bulk\/csv\.ts$)/,
  },
  { name: 'store', test: /\/src\/store\/sqlite\// },
  { name: 'start', test: /\/src\/daemon\/(?:serve|start\/start)\.ts$/ },
  {
    name: 'daemon',
    test: /\/src\/(?:daemon\/(?:daemon|metrics|role\/(?:agent|authority))|http\/memory)\.ts$/,
  },
].map((group, index, all) => ({ ...group, priority: all.length - index }));

// Of files that are no longer in src nothing stays.
for (const file of globSync(inRoot('dist/**/*.{js,d.ts}'))) rmSync(file);
const compiler = [inRoot('node_modules/typescript/bin/tsc'), '--project', inRoot('src')];
execFileSync(process.execPath, [...compiler, '--emitDeclarationOnly'], { stdio: 'inherit' });
// All in one folder, as deep as in src: what is looked for beside a module is found from whichever file holds it.
await bundle(entries, {
  dir: inRoot('dist'),
  chunkFileNames: 'cli/[name].js',
  codeSplitting: { groups },
});
// Each in one file, which starts a thread sooner than many that it would share.
for (const worker of workers) {
  await bundle(workerSource(worker), { file: inRoot(`dist/cli/${worker}.js`), codeSplitting: false });
}
for (const name of viewerFiles) copyFileSync(viewerPath(name), inRoot(`dist/cli/${name}`));
copyFileSync(inRoot('src/cli/launcher.js'), inRoot('dist/cli/launcher.js'));
writeFileSync(inRoot('dist/third-party.txt'), thirdPartyNotices(root, await bundledModules()));
const manual = execFileSync(process.execPath, [inRoot('dist/cli/main.js'), 'man']);
writeFileSync(inRoot('dist/latchkey.1'), manual);
