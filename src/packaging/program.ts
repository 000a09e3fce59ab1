import { copyFileSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, programSource, workers, workerSource } from './bundle.ts';
import { buildPage, pages, writePage } from './console-page.ts';
import { noticesOf } from './third-party.ts';

const root = join(import.meta.dirname, '../..');
const source = join(root, 'src');

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

/**
 * Builds the program into `directory`, whose parent folder has the package.json: the sources and the dependencies in few
 * files, the launcher, and the files that the program reads. `libraries` are modules for other programs: a source for each
 * name of a file.
 */
export async function buildProgram(directory: string, libraries: Record<string, string> = {}): Promise<void> {
  // Shared chunks must stay at their sources' depth: the code resolves package.json and the threads by relative path.
  await bundle({ ...libraries, 'cli/main': programSource }, 'package', {
    dir: directory,
    chunkFileNames: 'cli/[name].js',
    codeSplitting: { groups },
  });
  // Threads load what features add only when it is used: in one file, each would have the whole program.
  const threads = Object.fromEntries(workers.map((worker) => [`cli/${worker}`, workerSource(worker)]));
  await bundle(threads, 'package', { dir: directory, chunkFileNames: 'cli/thread-[name].js' });
  for (const path of globSync('**/schema.sql', { cwd: source })) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    copyFileSync(join(source, path), join(directory, path));
  }
  for (const name of pages) {
    const page = await buildPage(name);
    writePage(page.files, join(directory, name));
    // The page includes its packages, unlike the rest of the npm package.
    writeFileSync(join(directory, `third-party-${name}.txt`), `${noticesOf(page.modules)}\n`);
  }
  copyFileSync(join(source, 'cli/launcher.js'), join(directory, 'cli/launcher.js'));
}

const [directory] = process.argv.slice(2);
if (import.meta.main && directory !== undefined) await buildProgram(directory);
