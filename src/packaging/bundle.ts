import { join } from 'node:path';
import { build, type InputOptions, type OutputOptions, type Plugin } from 'rolldown';

const root = join(import.meta.dirname, '../..');

/** The source of the program, from the root of the repository. */
export const programSource = 'src/cli/main.ts';

/** The entry points of threads, by the names that `daemon/threads/worker.ts` looks for. */
export const workers: readonly string[] = ['file-worker', 'reading-worker', 'writer-worker'];

/** The source of a thread, from the root of the repository. */
export function workerSource(worker: string): string {
  return `src/daemon/threads/${worker}.ts`;
}

type Input = string | Record<string, string>;
/** The npm package, or the single executable. */
type Form = 'package' | 'executable';

/**
 * Bundles entry points (paths from the root of the repository) with all modules that they import, also those of packages:
 * Node loads one file faster than many.
 */
export async function bundle(input: Input, form: Form, output: OutputOptions): Promise<void> {
  await build(bundleOptions(input, form, output));
}

/** Returns the paths of all modules that the executable includes. */
export async function includedModules(): Promise<readonly string[]> {
  const threads = workers.map((worker) => [worker, workerSource(worker)]);
  const input = { main: programSource, ...Object.fromEntries(threads) };
  const { output } = await build({ ...bundleOptions(input, 'executable', {}), write: false });
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

function bundleOptions(
  input: Input,
  form: Form,
  output: OutputOptions,
): InputOptions & { output: OutputOptions } {
  return {
    input,
    cwd: root,
    platform: 'node',
    // Each warning ends the build: it may be about a module that would be missing at run time.
    onLog: (_level, { message }) => {
      throw new Error(message);
    },
    // On a slow machine, the bundler would warn that plugins take long.
    checks: { bundlerTimings: false },
    plugins: [builtinsOnUse, withoutUnused, asciiOnly, ...(form === 'executable' ? [withoutFiles] : [])],
    output: { format: 'esm', comments: false, ...output },
  };
}

/**
 * Reads an export of a Node module where the export is used. An import statement reads every export, and so loads the
 * code behind each, for instance all of Web Crypto behind `node:crypto`: `serve` would start 10 ms slower.
 */
const builtinsOnUse: Plugin = {
  name: 'builtins-on-use',
  resolveId: {
    filter: { id: /^node:/ },
    // The runtime of the bundler needs its own import.
    handler: (id, importer, { kind }) =>
      kind === 'import-statement' && importer?.startsWith('\0') !== true ? `\0${id}` : null,
  },
  load: {
    filter: { id: /^\0node:/ },
    handler: (id) => `module.exports = process.getBuiltinModule('${id.slice(1)}');`,
  },
};

/**
 * Leaves out what Fastify loads only for schemas, which no route gives it (`noSchemas` in `http/server.ts`), and for
 * `inject`, which only tests call: 645 of the 1610 kB of the largest file that `serve` would load.
 */
const withoutUnused: Plugin = {
  name: 'without-unused',
  resolveId: {
    filter: { id: /^(?:@fastify\/(?:ajv|fast-json-stringify)-compiler|light-my-request)$/ },
    handler: (id) => `\0unused:${id}`,
  },
  load: {
    filter: { id: /^\0unused:/ },
    handler: (id) => `module.exports = () => { throw new Error('not in this build: ${id.slice(8)}'); };`,
  },
};

/** V8 needs half the memory for source of ASCII alone. Other characters occur in literals only. */
const asciiOnly: Plugin = {
  name: 'ascii-only',
  generateBundle(_, files) {
    for (const file of Object.values(files)) if (file.type === 'chunk') file.code = escapeUnicode(file.code);
  },
};

function escapeUnicode(code: string): string {
  return code.replaceAll(/[^\0-\x7F]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Gives the modules of the executable, which has no files, a URL. Their own URL is the path of the executable: Node does
 * not know that path without /proc, and `createRequire` throws. The URL is absolute on Linux and on Windows.
 */
const withoutFiles: Plugin = {
  name: 'without-files',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk')
        file.code = file.code.replaceAll('import.meta.url', "'file:///C:/latchkey.js'");
    }
  },
};
