import { dirname } from 'node:path/posix';
import { describe, expect, it } from 'vitest';
import * as world from './support/reference/outside-world.ts';
import * as source from './support/reference/source-tree.ts';
import type { Import, Rule, Tree } from './support/reference/source-tree.ts';
import { strayWireNames } from './support/reference/wire-names.ts';

const { folderOf, importsOf, isNode, placesOf, readTree } = source;
const { belowDaemon, outsideAllowed, outsideUses, waitingInTheDomain, worldly } = world;

// --- The floors.

/** The files of the service that are contracts: folders of floor 2 may know these and no use case. */
const writing = ['service/ports.ts', 'service/tables.ts', 'service/writer.ts'];

/** What each folder may import besides itself: folders, single files, and modules of npm or Node. */
type Allowance = { folders: readonly string[]; files?: readonly string[]; modules: boolean };

const floors: Readonly<Record<string, Allowance>> = {
  domain: { folders: [], modules: false },
  // Each layer asks the list of features for what they add to it.
  service: { folders: ['domain'], files: ['features.ts'], modules: false },
  store: {
    folders: ['domain'],
    files: [
      ...writing,
      'features.ts',
      'service/locks.ts',
      'service/agent/tables.ts',
      'service/outbox/tables.ts',
      'features/following/service/tables.ts',
      'features/leases/service/tables.ts',
      'features/webhooks/service/tables.ts',
      'features/console/service/tables.ts',
      'features/customers/service/tables.ts',
    ],
    modules: true,
  },
  upstream: {
    folders: ['domain'],
    files: ['service/ports.ts', 'features/following/service/ports.ts'],
    modules: true,
  },
  'features/leases': {
    // It signs and reads documents, whose shapes are in wire.
    folders: ['domain', 'service', 'wire'],
    // Private keys are files, written as durably as those of the store. Agents and holders wait in the same way.
    files: ['store/sqlite/files/private-file.ts', 'sync/waiting.ts'],
    modules: true,
  },
  'features/webhooks': {
    folders: ['domain', 'service', 'wire'],
    files: ['sync/waiting.ts'],
    modules: true,
  },
  sync: {
    folders: ['domain'],
    // The queues of the outbox, what it hands to the use cases (policy, payload of a coupon), what it tells of itself.
    files: [
      ...writing,
      'features.ts',
      'service/outbox/queue.ts',
      'service/outbox/tables.ts',
      'service/outbox/plan-step.ts',
      // What the upstream is, and whether it gets again what it may have lost.
      'service/outbox/upstream/identity.ts',
      'service/outbox/upstream/lost-operations.ts',
      // Under which id an agent follows license keys, and what it is told about them.
      'features/following/service/follower-id.ts',
      'features/following/service/ports.ts',
      'service/status.ts',
      // What an event of a store is, and what became of it.
      'features/webhooks/service/store-event.ts',
      // The signature of Standard Webhooks.
      'features/webhooks/signature.ts',
    ],
    modules: true,
  },
  // The shapes of requests and responses: no server is needed to know them.
  wire: { folders: ['domain', 'service'], files: ['features.ts'], modules: true },
  http: { folders: ['domain', 'service', 'wire'], files: ['features.ts'], modules: true },
  // Each store has what it answers, and how it is asked.
  stores: { folders: ['domain', 'service', 'wire', 'upstream', 'http'], modules: true },
  config: { folders: ['domain'], files: ['features.ts'], modules: true },
  daemon: { folders: belowDaemon, files: ['features.ts'], modules: true },
  // It runs in a browser, and takes only types from elsewhere.
  'features/console': { folders: ['wire'], modules: true },
  // It runs in other people's programs, on older Nodes.
  client: { folders: [], modules: true },
  cli: {
    // The commands for the signing keys of leases work on files, without a daemon.
    folders: ['domain', 'config', 'wire', 'features/leases'],
    // One maker of directories; the lock of a state directory, which says whether a daemon that cannot be reached runs.
    files: ['store/sqlite/files/state-directory.ts', 'store/sqlite/files/private-file.ts', 'features.ts'],
    modules: true,
  },
  // Each is a folder of its own, and imports another only if its declaration says so.
  features: { folders: [...belowDaemon, 'daemon', 'cli'], files: ['feature.ts'], modules: true },
  // Scripts of their own, which build what is shipped.
  // What has to lie in the executable beside the program.
  packaging: {
    folders: [],
    files: ['http/viewer-file.ts'],
    modules: true,
  },
  // Only `features.ts` and the entries of the package import features.
  '': { folders: [...belowDaemon, 'daemon'], files: ['cli/command.ts'], modules: false },
};

/**
 * The commands that run a process of their own, and load the daemon when they do; the doctor and the check of
 * a configuration look at the store and at the upstream with the daemon's own eyes, since often no daemon runs
 * when they are asked.
 */
const loadDaemon = new Set([
  ...['serve', 'backup', 'state', 'doctor', 'config', 'version', 'support'].map(
    (name) => `cli/commands/${name}.ts`,
  ),
  'features/postgres/cli/store.ts',
]);

const climbing: Rule = (tree) =>
  importsOf(tree)
    .filter((found) => !isAllowed(found))
    .map(({ path, target }) => `${path} imports ${target}`);

function isAllowed({ path, folder, target, isFile, node }: Import): boolean {
  const floor = floors[folder] ?? (folder.startsWith('features/') ? floors['features'] : undefined);
  if (floor === undefined) return false;
  if (!isFile) return floor.modules;
  const there = folderOf(target);
  if (node.type === 'ImportExpression' && there === 'daemon' && loadDaemon.has(path)) return true;
  if (floor === floors['features'] && featureOf(path) === featureOf(target)) return true;
  // Packages of the program, such as `latchkey/testing`.
  if (folder === '' && there.startsWith('features')) return true;
  return [folder, ...floor.folders].includes(there) || floor.files?.includes(target) === true;
}

/** The folder of a feature; null for what is not in one. */
function featureOf(path: string): string | null {
  return /^features\/([^/]+)\//.exec(path)?.[1] ?? null;
}

/** The only files outside features that name one: the lists, and the entries of the package. */
const listsOfFeatures = new Set([
  'features.ts',
  'config/feature-sections.ts',
  'config/public-settings.ts',
  'testing.ts',
  'index.ts',
]);

const featuresInCore: Rule = (tree) =>
  importsOf(tree)
    .filter(({ path, target, isFile }) => {
      const feature = featureOf(target);
      return isFile && feature !== null && featureOf(path) === null && !listsOfFeatures.has(path);
    })
    .map(({ path, target }) => `${path} imports ${target}`);

/** The folder of a store; null for what is not in one. */
function storeOf(path: string): string | null {
  return /^stores\/([^/]+)\//.exec(path)?.[1] ?? null;
}

const eagerStores: Rule = (tree) =>
  importsOf(tree)
    .filter(({ path, target, node, isFile }) => {
      const store = storeOf(target);
      if (!isFile || store === null || store === storeOf(path)) return false;
      return path !== 'stores/store.ts' || node.type !== 'ImportExpression';
    })
    .map(({ path, target }) => `${path} imports ${target}`);

const undeclaredNeeds: Rule = (tree) =>
  importsOf(tree)
    .filter(({ path, target, isFile }) => {
      const [from, to] = [featureOf(path), featureOf(target)];
      if (!isFile || from === null || to === null || from === to) return false;
      const needs = /needs: \[([^\]]*)\]/.exec(tree[`features/${from}/feature.ts`] ?? '')?.[1] ?? '';
      return !needs.includes(`'${to}'`);
    })
    .map(({ path, target }) => `${path} imports ${target}`);

const emptyFloors: Rule = (tree) =>
  Object.keys(floors).filter((folder) => !Object.keys(tree).some((path) => folderOf(path) === folder));

/** A folder with more files than this is no room any more: what belongs together in it gets one of its own. */
const mostFiles = 18;

/** Its files have the names of commands, and are found by them. */
const folderOfCommands = 'cli/commands';

const crowdedFolders: Rule = (tree) => {
  const files = Map.groupBy(Object.keys(tree), (path) => dirname(path));
  return [...files]
    .filter(([folder, paths]) => paths.length > mostFiles && folder !== folderOfCommands)
    .map(([folder, paths]) => `${folder} has ${paths.length} files`);
};

function folderWith(files: number): Tree {
  return Object.fromEntries(Array.from({ length: files }, (_, number) => [`wire/a${number}.ts`, '']));
}

/** The package's entries and the list of use cases: they hold named re-exports, and nothing else. */
const lists = new Set(['index.ts', 'testing.ts', 'client/index.ts', 'service/use-cases.ts']);

const barrels: Rule = (tree) =>
  placesOf(tree)
    .filter(({ path, node, parent }) => {
      const isReExport = node.type.startsWith('Export') && isNode(node['source']);
      if (!lists.has(path)) return isReExport || path.endsWith('/index.ts');
      return parent.type === 'Program' && (!isReExport || node.type === 'ExportAllDeclaration');
    })
    .map(({ path, node }) => `${path} has a ${node.type}`);

/** An exception that is no longer needed lets something in one day. */
const needlessExceptions: Rule = (tree) => {
  const used = new Set(outsideUses(tree));
  for (const { folder, target } of importsOf(tree)) used.add(`${folder} ${target}`);
  const single = Object.entries(floors).flatMap(([folder, { files = [] }]) =>
    files.map((file) => `${folder} ${file}`),
  );
  return [...single, ...Object.keys(outsideAllowed)].filter((exception) => !used.has(exception));
};

// --- The source as it is, and sources that break each rule.

const cases: { name: string; rule: Rule; breaks: Tree[]; keeps: Tree[] }[] = [
  { name: 'every floor has files to look at', rule: emptyFloors, breaks: [{}], keeps: [] },
  {
    name: 'no import climbs to a floor above, nor crosses between folders of floor 2',
    rule: climbing,
    breaks: [
      { 'domain/a.ts': "import { b } from '../service/b.ts';" },
      { 'domain/a.ts': "import type { b } from '../service/b.ts';" },
      { 'service/a.ts': "import 'node:fs';" },
      { 'store/a.ts': "export { b } from '../upstream/b.ts';" },
      { 'store/a.ts': "export * from '../config/b.ts';" },
      { 'sync/a.ts': "const b = await import('../http/b.ts');" },
      { 'sync/a.ts': "import { queueChange } from '../service/outbox/queue-license-change.ts';" },
      { 'upstream/a.ts': "type B = import('../sync/b.ts').B;" },
      { 'cli/commands/serve.ts': "import { serve } from '../../daemon/serve.ts';" },
      { 'cli/verify.ts': "const { serve } = await import('../daemon/serve.ts');" },
      { 'cli/commands/serve.ts': "const { open } = await import('../../store/sqlite/files/open.ts');" },
      { 'cli/a.ts': 'await import(name);' },
      { 'cli/a.ts': "require('./b.ts');" },
      { 'attic/a.ts': "import { b } from '../domain/b.ts';" },
      { 'index.ts': "export { main } from './cli/main.ts';" },
      { 'cli/a.ts': "import { sandbox } from '../features/sandbox/feature.ts';" },
      { 'http/a.ts': "const { route } = await import('../features/webhooks/routes.ts');" },
    ],
    keeps: [
      { 'features.ts': "import { sandbox } from './features/sandbox/feature.ts';" },
      {
        'features/sandbox/a.ts': "import { b } from '../../daemon/b.ts'; import { c } from '../../cli/c.ts';",
      },
      { 'domain/a.ts': "import { b } from './b.ts'; // import { b } from '../service/b.ts';" },
      { 'http/a.ts': "import { b } from '../service/b.ts'; import { z } from 'zod'; import.meta.url;" },
      { 'cli/commands/serve.ts': "const { serve } = await import('../../daemon/serve.ts');" },
    ],
  },
  {
    name: 'no file of the core imports a feature',
    rule: featuresInCore,
    breaks: [
      { 'cli/a.ts': "import { b } from '../features/sandbox/b.ts';" },
      { 'http/a.ts': "const b = await import('../features/install/http/b.ts');" },
    ],
    keeps: [{ 'features.ts': "import { sandbox } from './features/sandbox/feature.ts';" }],
  },
  {
    name: 'the folder of a store is loaded only if the configuration names the store',
    rule: eagerStores,
    breaks: [
      { 'daemon/a.ts': "import { store } from '../stores/payhip/store.ts';" },
      { 'stores/store.ts': "import { store } from './payhip/store.ts';" },
      { 'stores/gumroad/a.ts': "import { b } from '../payhip/b.ts';" },
    ],
    keeps: [
      { 'stores/store.ts': "const { store } = await import('./payhip/store.ts');" },
      { 'stores/gumroad/a.ts': "import { b } from './b.ts'; import type { Store } from '../store.ts';" },
    ],
  },
  {
    name: 'a feature imports another only if its declaration says that it needs it',
    rule: undeclaredNeeds,
    breaks: [
      { 'features/a/b.ts': "import { c } from '../c/d.ts';" },
      { 'features/a/b.ts': "await import('../c/d.ts');", 'features/a/feature.ts': "needs: ['e']" },
    ],
    keeps: [
      { 'features/a/b.ts': "import { c } from '../c/d.ts';", 'features/a/feature.ts': "needs: ['e', 'c']" },
      { 'features/a/b.ts': "import { c } from './c/d.ts';" },
    ],
  },
  {
    name: 'no folder has more files than can be looked over',
    rule: crowdedFolders,
    breaks: [folderWith(19)],
    keeps: [folderWith(18)],
  },
  {
    name: 'no file passes on what is of another, but for the package entries and the list of use cases',
    rule: barrels,
    breaks: [
      { 'http/a.ts': "export { b } from './b.ts';" },
      { 'http/a.ts': "export * from './b.ts';" },
      { 'http/index.ts': 'export const a = 1;' },
      { 'index.ts': 'export const a = 1;' },
      { 'index.ts': "export * from './http/b.ts';" },
    ],
    keeps: [{ 'index.ts': "export { a, type B } from './http/b.ts';", 'http/a.ts': 'export { a };' }],
  },
  {
    name: 'below the daemon nobody asks the clock, chance or the process, but for those who say why',
    rule: worldly,
    breaks: [
      { 'domain/a.ts': 'Date.now()' },
      { 'domain/a.ts': 'new Date()' },
      { 'service/a.ts': 'Date(); const clock = Date;' },
      { 'service/a.ts': 'Math.random()' },
      { 'store/a.ts': '`${process.pid}`' },
      { 'store/a.ts': 'const { env } = process; f({ process });' },
      { 'sync/a.ts': 'setTimeout(go, 1)' },
      { 'sync/a.ts': "import { setTimeout as sleep } from 'node:timers/promises';" },
      { 'upstream/a.ts': 'AbortSignal.timeout(1)' },
      { 'http/a.ts': "import { randomUUID as name } from 'node:crypto';" },
      { 'config/load.ts': 'Date.now()' },
    ],
    keeps: [
      { 'domain/a.ts': 'new Date(epochMs).toISOString(); Date.parse(text); type A = Date;' },
      { 'domain/a.ts': '// Date.now()\n"Math.random()"; this.process.length; a = { process: 1 };' },
      { 'config/load.ts': 'process.env', 'daemon/a.ts': 'Date.now(); process.exit();' },
    ],
  },
  { name: 'every exception to these is still needed', rule: needlessExceptions, breaks: [{}], keeps: [] },
  {
    name: 'the domain waits for nothing',
    rule: waitingInTheDomain,
    breaks: [{ 'domain/a.ts': 'async () => 1' }, { 'domain/a.ts': 'type A = Promise<number>;' }],
    keeps: [{ 'domain/a.ts': '/* await */ const a = 1;', 'service/a.ts': 'await b();' }],
  },
  {
    name: 'names of the wire stay in wire files, configuration and the command line',
    rule: strayWireNames,
    breaks: [
      { 'service/a.ts': 'const license_key = 1;' },
      { 'http/routes/api/license.ts': '({ buyer_email: 1 })' },
      { 'upstream/exchange.ts': 'const { product_link } = body;' },
    ],
    keeps: [
      { 'wire/license.ts': '({ license_key: 1 })', 'upstream/wire.ts': '({ license_key: 1 })' },
      { 'domain/a.ts': "type A = 'in_flight';", 'service/a.ts': '({ in_flight: 1 })' },
      { 'store/a.ts': "const sql = 'SELECT license_key'; const many = 1_000_000;" },
    ],
  },
];

describe.each(cases)('$name', ({ rule, breaks, keeps }) => {
  it('holds in src', () => {
    expect(rule(readTree())).toEqual([]);
  });

  it('is broken by a source that breaks it', () => {
    expect(breaks.filter((tree) => rule(tree).length === 0)).toEqual([]);
  });

  it('is kept by a source that keeps it', () => {
    expect(keeps.flatMap((tree) => rule(tree))).toEqual([]);
  });
});
