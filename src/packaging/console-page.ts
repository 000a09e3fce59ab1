import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'rolldown';

const root = join(import.meta.dirname, '../..');
const features = join(root, 'src/features');

/** The features that have a page for browsers. The build puts each page into a folder with the name of its feature. */
export const pages: readonly string[] = readdirSync(features).filter((feature) =>
  existsSync(join(features, feature, 'page/main.tsx')),
);

/** The files of a page by their names. `index.html` names the others, whose names have a hash of their content. */
export type PageFiles = ReadonlyMap<string, string>;

/** The files, and the modules that are in them, for the notices of third parties. */
export type BuiltPage = { readonly files: PageFiles; readonly modules: readonly string[] };

/** Builds the page of a feature in memory. */
export async function buildPage(feature: string): Promise<BuiltPage> {
  const source = join(features, feature, 'page');
  const { output } = await build({
    input: join(source, 'main.tsx'),
    cwd: root,
    platform: 'browser',
    write: false,
    // Under Wine, Rolldown finds no package where it also resolves links.
    resolve: { symlinks: false },
    // Each warning ends the build.
    onLog: (_level, { message }) => {
      throw new Error(message);
    },
    checks: { bundlerTimings: false },
    output: { format: 'esm', minify: true, comments: false, codeSplitting: false },
  });
  const [chunk] = output;
  const style = readFileSync(join(source, 'style.css'), 'utf8');
  const script = hashed('main', 'js', chunk.code);
  const sheet = hashed('style', 'css', style);
  const page = readFileSync(join(source, 'index.html'), 'utf8')
    .replace('main.js', script)
    .replace('style.css', sheet);
  const files = new Map([
    ['index.html', page],
    [script, chunk.code],
    [sheet, style],
  ]);
  return { files, modules: chunk.moduleIds };
}

function hashed(name: string, extension: string, content: string): string {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return `${name}-${hash}.${extension}`;
}

/** Writes the files of a page into an empty directory. */
export function writePage(files: PageFiles, directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(directory, name), content);
}

/** What a browser loads, in bytes after gzip. */
export function compressedSize(files: PageFiles): number {
  return [...files.values()].reduce((sum, content) => sum + gzipSync(content).length, 0);
}

async function report(): Promise<void> {
  for (const page of pages) {
    const { files } = await buildPage(page);
    for (const [name, content] of files) process.stdout.write(`${gzipSync(content).length} ${name}\n`);
    process.stdout.write(`${compressedSize(files)} bytes after gzip\n`);
  }
}

// Without `await`: the server of a clone loads this module by `require`.
if (import.meta.main) void report();
