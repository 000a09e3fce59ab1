import { importsOf, isTimeless, nameAt, placesOf, type Rule, type Tree } from './source-tree.ts';

/** The folders below the daemon, which passes time, randomness and the process to them. */
export const belowDaemon: readonly string[] = [
  'domain',
  'service',
  'store',
  'upstream',
  'sync',
  'features/leases',
  'features/webhooks',
  'wire',
  'http',
  'stores',
  'config',
];

const outsideNames =
  /^(?:Date|process|setTimeout|setInterval|setImmediate|queueMicrotask|performance|hrtime|randomUUID|getRandomValues|randomBytes|Math\.random|AbortSignal\.timeout)$/;
const outsideModules = /^node:(?:process|timers(?:\/promises)?|perf_hooks)$/;

/** The allowed uses of the outside world below the daemon, with reasons. */
export const outsideAllowed: Readonly<Record<string, string>> = {
  'config/load.ts process': 'gathers the raw text that configuration is made of: environment, platform',
  'config/file/windows-rights.ts process': 'runs the programs of the system that show access rights',
  'store/sqlite/files/open.ts process': 'only Node knows the version of its SQLite',
  'store/sqlite/connection.ts process': 'macOS needs another pragma for a durable commit',
  'store/sqlite/database.ts process': 'macOS needs another pragma for a durable commit',
  'store/sqlite/files/private-file.ts process':
    'Windows replaces no open file, has no flag against links, and flushes only a directory that is open for writing',
  'features/following/store/sqlite.ts randomBytes':
    'names the process in a position that agents only send back',
  'http/listen.ts node:process': 'a socket must never exist with a wider mode',
  'http/entry/connections.ts performance': 'how long a real connection has rested, in real time',
  'http/entry/request-state.ts randomUUID': 'creates ids for requests without an id',
  'http/entry/server-response.ts setImmediate': 'waits for the end of an event loop turn, not for a time',
  'features/buyers/http/limits.ts setImmediate': 'lets verifies run between guesses',
  'features/buyers/http/limits.ts node:timers/promises': 'lets verifies run between guesses',
  'features/buyers/http/page.ts setTimeout': 'hides how long a real read takes',
  'features/buyers/http/page.ts node:timers/promises': 'hides how long a real read takes',
  'wire/csv.ts setImmediate': 'lets other requests run while a large file is parsed',
  'upstream/exchange.ts setTimeout': 'the timeout of a real request, in real time',
};

/** Each use of the outside world below the daemon: file and name. */
export function outsideUses(tree: Tree): string[] {
  const names = placesOf(tree).flatMap((place) => {
    const word = nameAt(place);
    if (word === null || !outsideNames.test(word) || (word === 'Date' && isTimeless(place))) return [];
    return [{ ...place, word }];
  });
  const modules = importsOf(tree).filter(({ target }) => outsideModules.test(target));
  return [...names, ...modules.map((found) => ({ ...found, word: found.target }))]
    .filter(({ folder }) => belowDaemon.includes(folder))
    .map(({ path, word }) => `${path} ${word}`);
}

/** Below the daemon, only the listed files use the outside world. */
export const worldly: Rule = (tree) => outsideUses(tree).filter((use) => outsideAllowed[use] === undefined);

/** The domain is pure: only the layers above it wait. */
export const waitingInTheDomain: Rule = (tree) =>
  placesOf(tree)
    .filter(({ folder }) => folder === 'domain')
    .filter((place) => place.node['async'] === true || /^(?:Promise|AbortSignal)$/.test(nameAt(place) ?? ''))
    .map(({ path, node }) => `${path} has a ${node.type}`);
