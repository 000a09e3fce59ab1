/**
 * Builds `dist`, the content of the npm package: declarations by tsc, our own source and the dependencies in few files, the
 * launcher, and the manual page. `npm run build` and `npm pack` call this script.
 *
 * `npm pack` adds the dependencies as they are in node_modules (`bundleDependencies` in package.json), so that users get
 * the tested versions: npm reads no lock file of a tarball.
 *
 * With one file for each source, `latchkey serve` would start 40 ms later.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, programSource, workers, workerSource } from './bundle.ts';
import { buildPage, pages, writePage } from './console-page.ts';
import { noticesOf } from './third-party.ts';

const root = join(import.meta.dirname, '../..');
const inRoot = (path: string): string => join(root, path);

/**
 * The files that `serve` loads: each has the modules that match, and their imports that no file above it has. Loading a
 * file takes a third of a millisecond; without these groups, `serve` would load 80 more files, and a command 30 more. What
 * imports a package that an agent does not need at its start (csv-stringify, jose) is in no group.
 */
const groups = [
  { name: 'builtins', test: /^\0node:/ },
  { name: 'program', test: /\/src\/cli\/program\.ts$/ },
  { name: 'domain', test: /\/src\/(?:features\/\w+\/)?domain\// },
  { name: 'store', test: /\/src\/store\/sqlite\// },
  { name: 'configuration', test: /\/src\/(?:(?:features\/\w+\/)?config\/|cli\/configuration\.ts$)/ },
  { name: 'wire', test: /\/src\/(?:features\/(?!bulk)\w+\/)?wire\// },
  { name: 'system', test: /\/src\/daemon\/system\// },
  { name: 'start', test: /\/src\/daemon\/(?:serve|start|store\/local-store)\.ts$/ },
  { name: 'daemon', test: /\/src\/daemon\/(?:compose|metrics)\.ts$/ },
].map((group, index, all) => ({ ...group, priority: all.length - index }));

// Remove what an earlier build made from sources that are gone.
for (const file of globSync(inRoot('dist/**/*.{js,d.ts}'))) rmSync(file);
const compiler = [inRoot('node_modules/typescript/bin/tsc'), '--project', inRoot('src')];
execFileSync(process.execPath, [...compiler, '--emitDeclarationOnly'], { stdio: 'inherit' });
// Shared chunks must stay at their sources' depth: the code resolves package.json and the threads by relative path.
await bundle({ index: 'src/index.ts', testing: 'src/testing.ts', 'cli/main': programSource }, 'package', {
  dir: inRoot('dist'),
  chunkFileNames: 'cli/[name].js',
  codeSplitting: { groups },
});
// Threads load what features add only when it is used: in one file, each would have the whole program.
const threads = Object.fromEntries(workers.map((worker) => [`cli/${worker}`, workerSource(worker)]));
await bundle(threads, 'package', { dir: inRoot('dist'), chunkFileNames: 'cli/thread-[name].js' });
for (const path of globSync('**/schema.sql', { cwd: inRoot('src') })) {
  mkdirSync(dirname(inRoot(`dist/${path}`)), { recursive: true });
  copyFileSync(inRoot(`src/${path}`), inRoot(`dist/${path}`));
}
for (const name of pages) {
  const page = await buildPage(name);
  writePage(page.files, inRoot(`dist/${name}`));
  // The page includes its packages, unlike the rest of the npm package.
  writeFileSync(inRoot(`dist/third-party-${name}.txt`), `${noticesOf(page.modules)}\n`);
}
copyFileSync(inRoot('src/cli/launcher.js'), inRoot('dist/cli/launcher.js'));
const manual = execFileSync(process.execPath, [inRoot('dist/cli/main.js'), 'man']);
writeFileSync(inRoot('dist/latchkey.1'), manual);
