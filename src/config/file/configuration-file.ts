import { dirname } from 'node:path';
import { lstatSync, type Stats, statSync } from 'node:fs';
import { settings } from '../configuration.ts';
import { type ConfigError, formatReason, type KeyPath } from '../errors.ts';
import { findConfigurationFiles, type Machine, pathsOf } from '../defaults.ts';
import { metaOf, settingsOf } from '../section.ts';
import { isTree } from './tree.ts';
import { checkRights, formatAccounts, type Rights } from './windows-rights.ts';
import { parseYaml } from './yaml.ts';

/** What decides which file is read, and how; `readFile` throws the error of the file system. */
export interface FileSources extends Machine {
  readonly file?: string | undefined;
  readonly directory: string;
  readonly readFile: (path: string) => string;
  /**
   * Checks a file that other users may have created before it is read: the file in the working directory, and on Windows
   * the file in %ProgramData%. Without this check no file is searched there.
   */
  readonly checkLocalFile?: (path: string) => LocalFile;
}

export const localFileName = 'latchkey.yaml';

/** The values given by the configuration file, its relative paths made absolute from its folder. */
export interface FileValues {
  readonly tree: unknown;
  readonly path: string | null;
  /** The source that names the file: `flag`, `environment LATCHKEY_CONFIG` or `default`. */
  readonly origin: string;
  /** The default paths that were searched, up to the one that has a file. */
  readonly searchedPaths: readonly string[];
  readonly errors: readonly ConfigError[];
  readonly originOf: (path: KeyPath) => string;
}

/**
 * Finds and reads the configuration file. A named file must exist, a file at a default path need not.
 * `isStateNamed`: the state directory already names the daemon, so the file in the working directory is ignored.
 */
export function readConfigurationFile(sources: FileSources, isStateNamed: boolean): FileValues {
  const { file, directory, environment, platform } = sources;
  const { resolve } = pathsOf(platform);
  const variable = environment['LATCHKEY_CONFIG'];
  if (file !== undefined) return parseFile(open(sources, resolve(directory, file)), platform, 'flag');
  if (variable !== undefined && variable !== '')
    return parseFile(open(sources, resolve(directory, variable)), platform, 'environment LATCHKEY_CONFIG');
  return searchFile(sources, isStateNamed);
}

function searchFile(sources: FileSources, isStateNamed: boolean): FileValues {
  const { platform } = sources;
  const local = pathsOf(platform).join(sources.directory, localFileName);
  const checked = isStateNamed ? undefined : sources.checkLocalFile?.(local);
  const searchedPaths = checked === undefined ? [] : [local];
  if (checked === 'safe') return parseFile(open(sources, local), platform, 'default', searchedPaths);
  const [user, system] = findConfigurationFiles(sources);
  for (const path of [user, system]) {
    searchedPaths.push(path);
    // Every user of Windows can create a folder in %ProgramData%.
    if (path === system && platform === 'win32' && sources.checkLocalFile?.(path) !== 'safe') continue;
    const opened = open(sources, path);
    if (!isAbsent(opened)) return parseFile(opened, platform, 'default', searchedPaths);
  }
  return { ...none, searchedPaths };
}

type Opened = { readonly path: string } & ({ readonly text: string } | { readonly error: unknown });

const none: FileValues = {
  tree: {},
  path: null,
  origin: 'default',
  searchedPaths: [],
  errors: [],
  originOf: () => 'default',
};

function open(sources: FileSources, path: string): Opened {
  try {
    return { path, text: sources.readFile(path) };
  } catch (error) {
    return { path, error };
  }
}

function isAbsent(opened: Opened): boolean {
  const error = 'error' in opened ? opened.error : undefined;
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

function parseFile(
  opened: Opened,
  platform: NodeJS.Platform,
  origin: string,
  searchedPaths: readonly string[] = [],
): FileValues {
  const { path } = opened;
  const atLine = (line: number): string => `${path} line ${line}`;
  const refuse = (...errors: readonly Omit<ConfigError, 'key'>[]): FileValues => ({
    ...none,
    path,
    searchedPaths,
    errors: errors.map((error) => ({ key: 'file', ...error })),
  });
  if ('error' in opened)
    return refuse({ text: `cannot read ${path}: ${formatReason(opened.error)}`, origin });
  const yaml = parseYaml(opened.text);
  if (!('value' in yaml)) return refuse(...yaml.map(({ text, line }) => ({ text, origin: atLine(line) })));
  const tree = yaml.value;
  if (!isTree(tree)) {
    const text =
      tree === null || tree === ''
        ? 'has no settings: write some, or {} for a store with every default'
        : 'must be a mapping of keys to values';
    return refuse({ text, origin: atLine(yaml.lineOf([])) });
  }
  return {
    tree: anchorPaths(tree, pathsOf(platform).dirname(path), platform),
    path,
    origin,
    searchedPaths,
    errors: [],
    originOf: (at) => atLine(yaml.lineOf(at)),
  };
}

const pathKeys: ReadonlySet<string> = new Set(
  settingsOf(settings)
    .filter(({ type }) => metaOf(type).isPath === true)
    // The items of a list of paths have the key of the list.
    .map(({ path }) => path.findLast((step) => step !== '[]') ?? ''),
);

/**
 * Makes the relative paths in a value absolute, starting from `folder`. `isPath`: the value belongs to the key of a path,
 * or of a list of paths.
 */
export function anchorPaths(
  value: unknown,
  folder: string,
  platform: NodeJS.Platform,
  isPath = false,
): unknown {
  if (typeof value === 'string')
    return isPath && value !== '' ? pathsOf(platform).resolve(folder, value) : value;
  if (Array.isArray(value)) return value.map((item) => anchorPaths(item, folder, platform, isPath));
  if (!isTree(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      // An item of a list from the environment has its position as a key.
      const isPathHere = pathKeys.has(key) || (isPath && /^\d+$/.test(key));
      return [key, anchorPaths(item, folder, platform, isPathHere)];
    }),
  );
}

/** The state of a file in the working directory that was not named; `unsafe`: why the file must not be used. */
export type LocalFile = 'absent' | 'safe' | { readonly unsafe: string };

const root = 0;
const writableByGroup = 0o020;
const writableByAll = 0o002;

/**
 * Whether only this user or root can have put a file here.
 *
 * In a directory like /tmp, another user could leave a file that leads commands to a daemon of that user. A user who
 * can write to the directory can replace the file, and files that it names by a relative path. `user`: the number of
 * this user.
 */
export function checkLocalFile(path: string, user: number): LocalFile {
  const named = lstatOrNull(path);
  if (named === null) return 'absent';
  try {
    const unsafe =
      unsafeStats(statSync(dirname(path)), 'its directory', user) ??
      (named.isSymbolicLink() ? unsafeOwner(named, 'the link', user) : null) ??
      unsafeFile(statSync(path), user);
    return unsafe === null ? 'safe' : { unsafe };
  } catch (error) {
    return { unsafe: formatReason(error) };
  }
}

/**
 * Checks a file on Windows like `checkLocalFile`. The programs of Windows may give no answer (not on Windows itself, but
 * under Wine): then the file is used, and `onUnchecked` gets the reason.
 */
export function checkWindowsFile(
  path: string,
  onUnchecked: (reason: string) => void,
  check: (path: string) => Rights = checkRights,
): LocalFile {
  const named = lstatOrNull(path);
  if (named === null) return 'absent';
  if (!named.isFile()) return { unsafe: 'it is not a regular file' };
  for (const [each, name] of [
    [dirname(path), 'its directory'],
    [path, 'it'],
  ] as const) {
    const rights = check(each);
    if (rights.kind === 'denied') return { unsafe: `${rights.reason} (${name})` };
    if (rights.kind === 'unchecked') {
      onUnchecked(rights.reason);
      return 'safe';
    }
    const writers = rights.files.flatMap((file) => file.writers);
    if (writers.length > 0) return { unsafe: `other users can write to ${name}: ${formatAccounts(writers)}` };
  }
  return 'safe';
}

/** Also null if this user may not read the directory. */
function lstatOrNull(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

function unsafeFile(stats: Stats, user: number): string | null {
  return stats.isFile() ? unsafeStats(stats, 'it', user) : 'it is not a regular file';
}

function unsafeStats(stats: Stats, name: string, user: number): string | null {
  if (isWritableByOthers(stats)) return `other users can write to ${name}`;
  return unsafeOwner(stats, name, user);
}

function unsafeOwner({ uid }: Stats, name: string, user: number): string | null {
  return uid === user || uid === root ? null : `${name} belongs to user ${uid}, and this is user ${user}`;
}

/** A group with the number of its user belongs to that user alone; where such groups exist, new files are writable by them. */
function isWritableByOthers({ mode, uid, gid }: Stats): boolean {
  return (mode & writableByAll) !== 0 || ((mode & writableByGroup) !== 0 && gid !== uid);
}
