import { promises as files, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { getAsset, getAssetKeys, isSea } from 'node:sea';

/** The files of the page by their names. `index.html` names the others, whose names have a hash of their content. */
export type ConsoleFiles = ReadonlyMap<string, string>;

/** The name of a file of the console among the assets of the single executable begins with this. */
const assetPrefix = 'console/';

/** Makes the function that returns the files of the page: from the build, or from the source in a clone. */
export function consoleFiles(): () => Promise<ConsoleFiles> {
  if (import.meta.url.endsWith('.ts')) return filesFromSource();
  let built: Promise<ConsoleFiles> | null = null;
  return async () => await (built ??= isSea() ? Promise.resolve(readAssets()) : readBuild());
}

function readAssets(): ConsoleFiles {
  const names = getAssetKeys().filter((name) => name.startsWith(assetPrefix));
  return new Map(names.map((name) => [name.slice(assetPrefix.length), getAsset(name, 'utf8')]));
}

/** Every bundle that has this module is one folder below `dist`. */
async function readBuild(): Promise<ConsoleFiles> {
  const directory = new URL('../console/', import.meta.url);
  const names = await files.readdir(directory);
  const read = names.map(
    async (name) => [name, await files.readFile(new URL(name, directory), 'utf8')] as const,
  );
  return new Map(await Promise.all(read));
}

/** Part of packaging/console-page.ts, which is not in the build. */
type Packaging = { buildPage: (feature: string) => Promise<{ files: ConsoleFiles }> };

/** Builds the page at the first request, and again after its source has changed. */
function filesFromSource(): () => Promise<ConsoleFiles> {
  const source = new URL('../page/', import.meta.url);
  // No import: the bundler would follow it.
  const load = createRequire(import.meta.url);
  let current: { stamp: number; built: Promise<ConsoleFiles> } | null = null;
  return async () => {
    const stamp = newestChange(source);
    if (current?.stamp !== stamp) {
      const { buildPage } = load('../../../packaging/console-page.ts') as Packaging;
      current = { stamp, built: buildPage('console').then((built) => built.files) };
    }
    return await current.built;
  };
}

function newestChange(directory: URL): number {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return Math.max(...names.map((name) => statSync(new URL(name, directory)).mtimeMs));
}
