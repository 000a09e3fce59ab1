import { join } from 'node:path';
import { build, type InputOptions, type OutputOptions, type Plugin } from 'rolldown';
import { parseSync, Visitor } from 'rolldown/utils';

const root = join(import.meta.dirname, '../..');

/** The entry points of threads, by the names that `daemon/threads/start-worker.ts` looks for. */
export const workers: readonly string[] = [
  'backup-worker',
  'integrity-worker',
  'reading-worker',
  'writer-worker',
];

/** Where the source of a thread is, from the root of the repository. */
export function workerSource(worker: string): string {
  return `src/daemon/threads/${worker}.ts`;
}

/**
 * Puts entry points (paths from the root of the repository) and all that they import, also from packages, into few
 * files: a module is found, read and linked in far less time when it is not a file of its own. Names stay, for
 * stack traces.
 */
export async function bundle(input: Input, output: OutputOptions): Promise<void> {
  await build(optionsFor(input, output));
}

/** What the package and its threads begin with. */
export const entries = { index: 'src/index.ts', testing: 'src/testing.ts', 'cli/main': 'src/cli/main.ts' };

/** The paths of all modules that a bundle holds. */
export async function bundledModules(): Promise<readonly string[]> {
  const threads = workers.map((worker) => [worker, workerSource(worker)] as const);
  const input = { ...entries, ...Object.fromEntries(threads) };
  const { output } = await build({ ...optionsFor(input, {}), write: false });
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

type Input = string | Record<string, string>;

function optionsFor(input: Input, output: OutputOptions): InputOptions & { output: OutputOptions } {
  return {
    input,
    cwd: root,
    platform: 'node',
    // Its parser is not in the bundle (`unused`), whatever the environment says.
    transform: { define: { 'process.env.UNDICI_USE_MILO': '""' } },
    plugins: [usedParts, unusedModules, httpsOnUse, builtinsOnUse, inLines, asciiOnly],
    // On a slow machine it would warn of the time that plugins take.
    checks: { bundlerTimings: false },
    // A warning would be of something that is missing at run time.
    onLog: (_level, { message }) => {
      throw new Error(message);
    },
    output: { format: 'esm', comments: false, minify: withoutWhiteSpace, ...output },
  };
}

const withoutWhiteSpace = { compress: false, mangle: false, codegen: { removeWhitespace: true } } as const;

/** The parts that are used of packages whose entry point loads far more: what each exports, and the file of it. */
const parts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'prom-client': {
    Counter: 'prom-client/lib/counter.js',
    Gauge: 'prom-client/lib/gauge.js',
    Histogram: 'prom-client/lib/histogram.js',
    Registry: 'prom-client/lib/registry.js',
  },
  undici: {
    EnvHttpProxyAgent: 'undici/lib/dispatcher/env-http-proxy-agent.js',
    Pool: 'undici/lib/dispatcher/pool.js',
    buildConnector: 'undici/lib/core/connect.js',
  },
};

/** Takes the place of the entry points in `parts`; a name that is used and not in the list fails the build. */
const usedParts: Plugin = {
  name: 'used-parts',
  resolveId: {
    filter: { id: new RegExp(`^(?:${Object.keys(parts).join('|')})$`) },
    handler: (id) => `\0parts:${id}`,
  },
  load: {
    filter: { id: /^\0parts:/ },
    handler(id) {
      const name = id.slice('\0parts:'.length);
      const exported = Object.entries(parts[name] ?? {});
      return [
        ...exported.map(([part, file]) => `export { default as ${part} } from '${file}';`),
        entryPoints[name] ?? '',
      ].join('\n');
    },
  },
};

/** What the entry point does besides: undici's gives dispatchers the methods by which its proxy makes a tunnel. */
const entryPoints: Readonly<Record<string, string>> = {
  undici: `
    import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
    import api from 'undici/lib/api/index.js';
    Object.assign(Dispatcher.prototype, api);`,
};

/**
 * What packages ask for and nothing here makes them use. fastify: schemas (`http/server.ts` refuses them), requests
 * without a network, HTTP/2, whom a proxy speaks for, and which version of it a plugin wants. undici: HTTP/2
 * (`upstream/connections.ts`), forms with files, and a parser that only an environment variable asks for.
 */
const unused: Readonly<Record<string, RegExp>> = {
  fastify:
    /^(?:@fastify\/(?:ajv-compiler|fast-json-stringify-compiler|proxy-addr)|light-my-request|node:http2|semver)$/,
  undici: /^\.\/client-h2\.js$|^\.\.\/milo\/|^\.\.\/web\/(?:fetch\/(?:body\.js|formdata)|webidl)$/,
};

const unusedModules: Plugin = {
  name: 'unused-modules',
  resolveId: (id, importer = '') => {
    const isUnused = Object.entries(unused).some(
      ([name, ids]) => importer.includes(`/${name}/`) && ids.test(id),
    );
    return isUnused ? `\0unused:${id}` : null;
  },
  load: { filter: { id: /^\0unused:/ }, handler: () => 'module.exports = {};' },
};

/** fastify asks for `node:https`, and so for all of TLS, also where it listens without. */
const httpsOnUse: Plugin = {
  name: 'https-on-use',
  resolveId: {
    filter: { id: /^node:https$/ },
    handler: (_, importer) => (importer?.includes('/fastify/') === true ? '\0https-on-use' : null),
  },
  load: {
    filter: { id: /^\0https-on-use$/ },
    handler: () =>
      "exports.createServer = (...how) => process.getBuiltinModule('node:https').createServer(...how);",
  },
};

/**
 * An import statement reads every export of a module of Node, and so loads what lies behind each: behind `node:http`
 * a whole `fetch`, which nothing here uses. Here an export is read where it is used.
 */
const builtinsOnUse: Plugin = {
  name: 'builtins-on-use',
  resolveId: {
    filter: { id: /^node:/ },
    // The bundler's own runtime, by which the module of an import is made, comes before it.
    handler: (id, importer, { kind }) =>
      kind === 'import-statement' && importer?.startsWith('\0') !== true ? `\0${id}` : null,
  },
  load: {
    filter: { id: /^\0node:/ },
    handler: (id) => `module.exports = process.getBuiltinModule('${id.slice(1)}');`,
  },
};

/**
 * Node prints the whole line of an error that nobody caught, so each statement and each member of a class has a line
 * of its own, by which stack traces name it, too. A line break takes as little memory as one character.
 */
const inLines: Plugin = {
  name: 'in-lines',
  generateBundle(_, files) {
    for (const file of Object.values(files)) if (file.type === 'chunk') file.code = brokenUp(file.code);
  },
};

function brokenUp(code: string): string {
  const starts = new Set([0]);
  const each = ({ body }: { body: readonly { start: number }[] }): void => {
    for (const { start } of body) starts.add(start);
  };
  const visitor = new Visitor({ Program: each, BlockStatement: each, ClassBody: each });
  visitor.visit(parseSync('chunk.js', code).program);
  const lines = [...starts].sort((one, other) => one - other);
  return lines.map((start, index) => code.slice(start, lines[index + 1])).join('\n');
}

/** A text of ASCII alone takes half of the memory, and what is not ASCII stands only within literals. */
const asciiOnly: Plugin = {
  name: 'ascii-only',
  generateBundle(_, files) {
    for (const file of Object.values(files)) if (file.type === 'chunk') file.code = escaped(file.code);
  },
};

function escaped(code: string): string {
  return code.replaceAll(/[^\0-\x7F]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
