import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Source files by their path under src, with `/` between the parts. */
type Tree = Readonly<Record<string, string>>;

/** One rule about the shape of the house: what of a tree breaks it, one line each. */
type Rule = (tree: Tree) => string[];

const root = join(import.meta.dirname, '../src');

function readTree(): Tree {
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  return Object.fromEntries(
    paths.map((path) => [path.replaceAll(sep, '/'), readFileSync(join(root, path), 'utf8')]),
  );
}

// --- Reading TypeScript, as far as the rules need it.

/** Where a slash begins a regular expression and does not divide. */
const beforeExpression = /(?:^|[(,=:[!&|?{};+>]|\breturn|\bcase)\s*$/;
const plain = /[^'"`/{}]+/y;
const opaque = /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/y;
const regularExpression = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;
const templatePart = /(?:\\[^]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y;

function blankOf(text: string): string {
  return text.replaceAll(/[^\n'"`]/g, ' ');
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** The text with all comments, and what stands within strings, blanked: every place keeps its index. */
function readCode(text: string): string {
  let code = '';
  const templates: number[] = [];
  let depth = 0;
  while (code.length < text.length) {
    const at = code.length;
    const char = text.charAt(at);
    if (char === '`' || (char === '}' && templates.at(-1) === depth)) {
      if (char === '}') templates.pop();
      const part = matchAt(templatePart, text, at + 1);
      if (part.endsWith('{')) templates.push(depth);
      code += `${char === '`' ? char : ' '}${blankOf(part)}`;
      continue;
    }
    if (char === '{') depth += 1;
    if (char === '}') depth -= 1;
    const whole = matchAt(opaque, text, at);
    if (/^\/[/*]/.test(whole)) code += whole.replaceAll(/[^\n]/g, ' ');
    else if (whole !== '') code += blankOf(whole);
    else if (char === '/' && beforeExpression.test(code.slice(-200))) {
      code += blankOf(matchAt(regularExpression, text, at)) || char;
    } else code += matchAt(plain, text, at) || char;
  }
  return code;
}

const codes = new Map<string, string>();
function codeOf(text: string): string {
  const code = codes.get(text) ?? readCode(text);
  codes.set(text, code);
  return code;
}

type Import = {
  /** As written; for a file of the tree, its path. */
  target: string;
  isFile: boolean;
  kind: 'value' | 'type' | 'dynamic' | 're-export';
};

const importing =
  /\b(?:(?<head>(?:import|export)(?:\s+type\b)?)[\s\w$*{},]*\bfrom|(?<bare>import)|(?<dynamic>import)\s*\()\s*(?<quote>['"`])(?<blank>\s*)\k<quote>/g;

/** Every import of a file: static, for its effect alone, dynamic, re-export; of types only as well. */
function importsOf(path: string, text: string): Import[] {
  return [...codeOf(text).matchAll(importing)].map((match) => {
    const { head, dynamic, blank = '' } = match.groups ?? {};
    const end = match.index + match[0].length - 1;
    const written = text.slice(end - blank.length, end);
    const isFile = written.startsWith('.');
    const target = isFile ? posix.join(posix.dirname(path), written) : written;
    return { target, isFile, kind: kindOf(head, dynamic) };
  });
}

function kindOf(head: string | undefined, dynamic: string | undefined): Import['kind'] {
  if (dynamic !== undefined) return 'dynamic';
  if (head?.startsWith('export') === true) return 're-export';
  return head?.endsWith('type') === true ? 'type' : 'value';
}

function folderOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : '';
}

function allImports(tree: Tree): { path: string; folder: string; found: Import }[] {
  return Object.entries(tree).flatMap(([path, text]) =>
    importsOf(path, text).map((found) => ({ path, folder: folderOf(path), found })),
  );
}

/** Every place of the code, comments and strings left out, that a pattern finds. */
function placesOf(tree: Tree, pattern: RegExp): { path: string; folder: string; word: string }[] {
  return Object.entries(tree).flatMap(([path, text]) =>
    [...codeOf(text).matchAll(pattern)].map(([word]) => ({ path, folder: folderOf(path), word })),
  );
}

// --- The floors.

/** The files of the service that are contracts: folders of floor 2 may know these and no use case. */
const contracts = ['service/ports.ts', 'service/tables.ts'];
const writing = [...contracts, 'service/writer.ts'];

/** What each folder may import besides itself: folders, single files, and modules of npm or Node. */
type Allowance = { folders: readonly string[]; files?: readonly string[]; modules: boolean };

const floors: Readonly<Record<string, Allowance>> = {
  domain: { folders: [], modules: false },
  service: { folders: ['domain'], modules: false },
  store: { folders: ['domain'], files: writing, modules: true },
  upstream: { folders: ['domain'], files: contracts, modules: true },
  sync: {
    folders: ['domain'],
    // What it hands to the use cases (policy, payload of a coupon) and what it tells of itself.
    files: [...writing, 'service/outbox/policy.ts', 'service/outbox/coupon-payload.ts', 'service/status.ts'],
    modules: true,
  },
  http: { folders: ['domain', 'service'], modules: true },
  config: { folders: ['domain'], modules: true },
  daemon: {
    folders: ['domain', 'service', 'store', 'upstream', 'sync', 'http', 'config'],
    modules: true,
  },
  cli: { folders: ['domain', 'config'], modules: true },
  '': {
    folders: ['domain', 'service', 'store', 'upstream', 'sync', 'http', 'config', 'daemon'],
    modules: false,
  },
};

/**
 * The commands that run a process of their own, and load the daemon when they do; the doctor looks at the
 * store and at the upstream with the daemon's own eyes, since often no daemon runs when it is asked.
 */
const loadDaemon = new Set(
  ['serve', 'sandbox', 'demo', 'restore', 'doctor'].map((name) => `cli/local/${name}.ts`),
);

const climbing: Rule = (tree) =>
  allImports(tree)
    .filter(({ path, folder, found }) => !isAllowed(path, folder, found))
    .map(({ path, found }) => `${path} imports ${found.target}`);

function isAllowed(path: string, folder: string, { target, isFile, kind }: Import): boolean {
  const floor = floors[folder];
  if (floor === undefined) return false;
  if (!isFile) return floor.modules;
  if (folderOf(target) === folder || floor.folders.includes(folderOf(target))) return true;
  if (kind === 'dynamic' && folderOf(target) === 'daemon' && loadDaemon.has(path)) return true;
  return floor.files?.includes(target) === true;
}

/** An allowance of a single file that no longer is needed lets something in one day. */
const needlessAllowances: Rule = (tree) => {
  const used = new Set(allImports(tree).map(({ folder, found }) => `${folder} ${found.target}`));
  return Object.entries(floors).flatMap(([folder, { files = [] }]) =>
    files.filter((file) => !used.has(`${folder} ${file}`)).map((file) => `${folder} does not import ${file}`),
  );
};

const danglingImports: Rule = (tree) =>
  allImports(tree)
    .filter(({ found }) => found.isFile && tree[found.target] === undefined)
    .map(({ path, found }) => `${path} imports ${found.target}, which is not there`);

const unreadableImports: Rule = (tree) =>
  placesOf(tree, /\b(?:import\s*\((?!\s*['"`])|require\s*\()/g).map(
    ({ path, word }) => `${path} has ${word}…), whose target cannot be read`,
  );

// --- Time, chance and the process.

const outsideWorld =
  /\bDate\.now\b|\bnew Date\b(?!\s*\(\s*[^\s)])|(?<!new )\bDate\(|\bMath\.random\b|\b(?<!\.)process\s*[.[]|\b(?:setTimeout|setInterval|setImmediate|queueMicrotask|performance|hrtime|randomUUID|getRandomValues|randomBytes)\b|\bAbortSignal\.timeout\b/g;
const outsideModules = /^node:(?:process|timers(?:\/promises)?|perf_hooks)$/;
const below = new Set(['domain', 'service', 'store', 'upstream', 'sync', 'http', 'config']);

/** What may know the outside world below the daemon, and why. */
const outsideAllowed: Readonly<Record<string, { words: readonly string[]; why: string }>> = {
  'config/load.ts': {
    words: ['process.'],
    why: 'gathers the raw text that configuration is made of: environment, platform, working directory',
  },
  'store/files/open.ts': { words: ['process.'], why: 'which SQLite is built in, only Node can say' },
  'http/listen.ts': { words: ['node:process'], why: 'a socket must never be there with a wider mode' },
  'http/server.ts': { words: ['randomUUID'], why: 'names requests that come without a name' },
  'http/entry/broken-request.ts': { words: ['randomUUID'], why: 'names requests that cannot be read' },
  'upstream/transport.ts': {
    words: ['AbortSignal.timeout'],
    why: 'the bound of a real request, which has to end by real time',
  },
};

function outsideUses(tree: Tree): { path: string; word: string }[] {
  const modules = allImports(tree)
    .filter(({ found }) => outsideModules.test(found.target))
    .map(({ path, folder, found }) => ({ path, folder, word: found.target }));
  return [...placesOf(tree, outsideWorld), ...modules].filter(({ folder }) => below.has(folder));
}

const worldly: Rule = (tree) =>
  outsideUses(tree)
    .filter(({ path, word }) => outsideAllowed[path]?.words.includes(word) !== true)
    .map(({ path, word }) => `${path} has ${word}`);

const needlessWorldliness: Rule = (tree) => {
  const used = new Set(outsideUses(tree).map(({ path, word }) => `${path} ${word}`));
  return Object.entries(outsideAllowed).flatMap(([path, { words }]) =>
    words.filter((word) => !used.has(`${path} ${word}`)).map((word) => `${path} has no ${word}`),
  );
};

const waitingInTheDomain: Rule = (tree) =>
  placesOf(tree, /\b(?:async|await|Promise|AbortSignal)\b/g)
    .filter(({ folder }) => folder === 'domain')
    .map(({ path, word }) => `${path} has ${word}`);

// --- The shape of files.

const defaultExports: Rule = (tree) =>
  placesOf(tree, /\bexport\s+default\b|\bas\s+default\b/g).map(({ path }) => `${path} has a default export`);

/** What passes on the exports of other files: the package's own entry, and the one list of use cases. */
const lists = new Set(['index.ts', 'service/use-cases.ts']);

const barrels: Rule = (tree) => [
  ...allImports(tree)
    .filter(({ path, found }) => found.kind === 're-export' && !lists.has(path))
    .map(({ path, found }) => `${path} passes on ${found.target}`),
  ...Object.keys(tree)
    .filter((path) => path.endsWith('/index.ts'))
    .map((path) => `${path} is a barrel`),
];

const reExport = /\bexport\s+(?:type\s+)?\{[^}]*\}\s*from\s*(['"])\s*\1\s*;/g;
const ownCodeOfTheIndex: Rule = (tree) => {
  const own = codeOf(tree['index.ts'] ?? '')
    .replaceAll(reExport, '')
    .trim();
  return own === '' ? [] : [`index.ts has ${own}`];
};

const inSnakeCase = /(?<![\w$.-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b/g;
/** Where names of the wire and of files are at home. The command line speaks JSON and configuration. */
const speaksWire = /^(?:config|cli|daemon)\/|^http\/wire\/|\/wire\.ts$/;

/** Words of the domain, states and codes of problems, are written as in the contract wherever they stand. */
const strayWireNames: Rule = (tree) => {
  const words = new Set(
    Object.entries(tree)
      .filter(([path]) => ['domain', 'service'].includes(folderOf(path)))
      .flatMap(([path, text]) => [
        ...[...text.matchAll(/'([a-z0-9]+(?:_[a-z0-9]+)+)'/g)].map(([, word]) => word),
        ...(path === 'domain/problem.ts' ? [...text.matchAll(inSnakeCase)].map(([word]) => word) : []),
      ]),
  );
  return placesOf(tree, inSnakeCase)
    .filter(({ path, word }) => !speaksWire.test(path) && !words.has(word))
    .map(({ path, word }) => `${path} has ${word}`);
};

const mostLines = 300;
const longFiles: Rule = (tree) =>
  Object.entries(tree)
    .map(([path, text]) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > mostLines)
    .map(({ path, lines }) => `${path} has ${lines} lines`);

// --- The house as it is, and houses that break each rule.

/** What a rule says of the source; throws when there is none to look at. */
function brokenBy(rule: Rule): string[] {
  const tree = readTree();
  for (const folder of Object.keys(floors).filter((name) => name !== '')) {
    if (!Object.keys(tree).some((path) => folderOf(path) === folder))
      throw new Error(`src/${folder} is empty`);
  }
  return rule(tree);
}

type Case = { name: string; rule: Rule; breaks: Tree[]; keeps: Tree[] };

const files = (...paths: string[]): Tree => Object.fromEntries(paths.map((path) => [path, '']));
const lines = (count: number): string => 'x;\n'.repeat(count);

const cases: Case[] = [
  {
    name: 'no import climbs to a floor above, nor crosses between folders of floor 2',
    rule: climbing,
    breaks: [
      { 'domain/a.ts': "import { b } from '../service/b.ts';" },
      { 'domain/a.ts': "import type { b } from '../service/b.ts';" },
      { 'domain/a.ts': "import { join } from 'node:path';" },
      { 'domain/a.ts': "import { z } from 'zod';" },
      { 'service/a.ts': "import type {\n  B,\n  C,\n} from '../store/b.ts';" },
      { 'service/a.ts': "import 'node:fs';" },
      { 'store/a.ts': "export { b } from '../upstream/b.ts';" },
      { 'store/a.ts': "export * from '../config/b.ts';" },
      { 'sync/a.ts': "const b = await import('../http/b.ts');" },
      { 'sync/a.ts': "import { queueChange } from '../service/queue-change.ts';" },
      { 'upstream/a.ts': "type B = import('../sync/b.ts').B;" },
      { 'config/a.ts': "import { c } from '../service/ports.ts';" },
      { 'http/wire/a.ts': "import { b } from '../../store/b.ts';" },
      { 'daemon/a.ts': "import { b } from '../cli/b.ts';" },
      { 'cli/local/serve.ts': "import { serve } from '../../daemon/serve.ts';" },
      { 'cli/verify.ts': "const { serve } = await import('../daemon/serve.ts');" },
      { 'cli/local/serve.ts': "const { open } = await import('../../store/files/open.ts');" },
      { 'attic/a.ts': "import { b } from '../domain/b.ts';" },
      { 'index.ts': "export { main } from './cli/main.ts';" },
    ],
    keeps: [
      { 'domain/a.ts': "import { b } from './b.ts';" },
      { 'domain/a.ts': "// import { b } from '../service/b.ts';\nconst c = `from '../service/${'b'}.ts'`;" },
      { 'domain/a.ts': "const quote = /['\"/]/; /* import 'zod' */ const text = \"import 'zod'\";" },
      { 'http/a.ts': "import { b } from '../service/b.ts';" },
      { 'cli/local/serve.ts': "const { serve } = await import('../../daemon/serve.ts');" },
    ],
  },
  {
    name: 'every allowance of a single file is needed',
    rule: needlessAllowances,
    breaks: [{ 'sync/a.ts': "import type { Clock } from '../service/ports.ts';" }],
    keeps: [],
  },
  {
    name: 'every import of a file names one that is there',
    rule: danglingImports,
    breaks: [{ 'domain/a.ts': "import { b } from './b.ts';" }],
    keeps: [{ 'domain/a.ts': "import { b } from './b.ts';", 'domain/b.ts': '' }],
  },
  {
    name: 'every import names its target literally',
    rule: unreadableImports,
    breaks: [{ 'cli/a.ts': 'await import(name);' }, { 'cli/a.ts': "require('./b.ts');" }],
    keeps: [{ 'cli/a.ts': "await import('./b.ts'); import.meta.url;" }],
  },
  {
    name: 'below the daemon nobody asks the clock, chance or the process, but for those who say why',
    rule: worldly,
    breaks: [
      { 'domain/a.ts': 'Date.now()' },
      { 'domain/a.ts': 'new Date()' },
      { 'domain/a.ts': 'new Date( )' },
      { 'domain/a.ts': 'new Date' },
      { 'service/a.ts': 'Date()' },
      { 'service/a.ts': 'Math.random()' },
      { 'store/a.ts': 'process.env' },
      { 'store/a.ts': '`${process.pid}`' },
      { 'sync/a.ts': 'setTimeout(go, 1)' },
      { 'sync/a.ts': "import { setTimeout as sleep } from 'node:timers/promises';" },
      { 'upstream/a.ts': 'AbortSignal.timeout(1)' },
      { 'http/a.ts': 'performance.now()' },
      { 'config/load.ts': 'Date.now()' },
    ],
    keeps: [
      { 'domain/a.ts': 'new Date(epochMs).toISOString(); Date.parse(text);' },
      { 'domain/a.ts': '// process.env and Date.now()\n"Math.random()"; this.process.length' },
      { 'config/load.ts': 'process.env' },
      { 'daemon/a.ts': 'Date.now(); process.exit();' },
    ],
  },
  {
    name: 'every exception to that is still needed',
    rule: needlessWorldliness,
    breaks: [{ 'config/load.ts': 'const environment = {};' }],
    keeps: [],
  },
  {
    name: 'the domain waits for nothing',
    rule: waitingInTheDomain,
    breaks: [{ 'domain/a.ts': 'async () => 1' }, { 'domain/a.ts': 'type A = Promise<number>;' }],
    keeps: [{ 'domain/a.ts': '/* await */ const a = 1;' }, { 'service/a.ts': 'await b();' }],
  },
  {
    name: 'nothing is exported as default',
    rule: defaultExports,
    breaks: [{ 'cli/a.ts': 'export default 1;' }, { 'cli/a.ts': 'export { a as default };' }],
    keeps: [{ 'cli/a.ts': "export const a = 'export default';" }],
  },
  {
    name: 'no file passes on what is of another, but for the package entry and the list of use cases',
    rule: barrels,
    breaks: [{ 'http/a.ts': "export { b } from './b.ts';" }, files('http/index.ts')],
    keeps: [{ 'index.ts': "export { b } from './http/b.ts';" }],
  },
  {
    name: 'src/index.ts holds named re-exports alone',
    rule: ownCodeOfTheIndex,
    breaks: [{ 'index.ts': "export * from './http/b.ts';" }, { 'index.ts': 'export const a = 1;' }],
    keeps: [
      {
        'index.ts': "/** Why. */\nexport { a, type B } from './http/b.ts';\nexport type { C } from './c.ts';",
      },
      {},
    ],
  },
  {
    name: 'names of the wire stay in wire files, configuration and the command line',
    rule: strayWireNames,
    breaks: [
      { 'service/a.ts': 'const license_key = 1;' },
      { 'http/routes/license.ts': '({ buyer_email: 1 })' },
      { 'upstream/exchange.ts': 'const { product_link } = body;' },
    ],
    keeps: [
      { 'http/wire/license.ts': '({ license_key: 1 })', 'upstream/wire.ts': '({ license_key: 1 })' },
      { 'domain/a.ts': "type A = 'in_flight';", 'service/a.ts': '({ in_flight: 1 })' },
      { 'store/a.ts': "const sql = 'SELECT license_key'; const many = 1_000_000;" },
    ],
  },
  {
    name: `no file has more than ${mostLines} lines`,
    rule: longFiles,
    breaks: [{ 'http/a.ts': lines(mostLines + 1) }],
    keeps: [{ 'http/a.ts': lines(mostLines) }],
  },
];

describe.each(cases)('$name', ({ rule, breaks, keeps }) => {
  it('holds in src', () => {
    expect(brokenBy(rule)).toEqual([]);
  });

  it('is broken by a house that breaks it', () => {
    expect(breaks.filter((tree) => rule(tree).length === 0)).toEqual([]);
  });

  it('is kept by a house that keeps it', () => {
    expect(keeps.flatMap((tree) => rule(tree))).toEqual([]);
  });
});
