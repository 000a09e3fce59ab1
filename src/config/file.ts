import { dirname, resolve } from 'node:path';
import { anchorPaths } from './anchor.ts';
import { type Fault, formatReason, type KeyPath } from './fault.ts';
import { findConfigurationFiles, type Machine } from './place.ts';
import { isTree } from './tree.ts';
import { parseYaml } from './yaml.ts';

/** What decides which file is read, and how; `readFile` throws the file system's error. */
export interface FileSources extends Machine {
  /** The file that the command line names. */
  readonly file?: string | undefined;
  /** The working directory. */
  readonly directory: string;
  readonly readFile: (path: string) => string;
}

/** The values given by the configuration file, its relative paths made absolute from its folder. */
export interface FileValues {
  readonly tree: unknown;
  /** The file that was read; `null` when none is there. */
  readonly file: string | null;
  /** What named it: `flag`, `environment LATCHKEY_CONFIG` or `default`. */
  readonly origin: string;
  readonly faults: readonly Fault[];
  readonly originOf: (path: KeyPath) => string;
}

/** Finds and reads the configuration file: one that is named must exist, one at a default place need not. */
export function readConfigurationFile(sources: FileSources): FileValues {
  const { file, directory, environment } = sources;
  const variable = environment['LATCHKEY_CONFIG'];
  if (file !== undefined) return parseFile(open(sources, resolve(directory, file)), 'flag');
  if (variable !== undefined && variable !== '')
    return parseFile(open(sources, resolve(directory, variable)), 'environment LATCHKEY_CONFIG');
  const found = findConfigurationFiles(sources)
    .map((path) => open(sources, path))
    .find((opened) => !isAbsent(opened));
  return found === undefined ? none : parseFile(found, 'default');
}

type Opened = { readonly path: string } & ({ readonly text: string } | { readonly error: unknown });

const none: FileValues = { tree: {}, file: null, origin: 'default', faults: [], originOf: () => 'default' };

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

function parseFile(opened: Opened, origin: string): FileValues {
  const { path } = opened;
  const atLine = (line: number): string => `${path} line ${line}`;
  if ('error' in opened)
    return refuse(path, [{ text: `cannot read ${path}: ${formatReason(opened.error)}`, origin }]);
  const yaml = parseYaml(opened.text);
  if (!('value' in yaml))
    return refuse(
      path,
      yaml.map(({ text, line }) => ({ text, origin: atLine(line) })),
    );
  const tree = yaml.value ?? {};
  if (!isTree(tree))
    return refuse(path, [{ text: 'must be a mapping of keys to values', origin: atLine(yaml.lineOf([])) }]);
  return {
    tree: anchorPaths(tree, dirname(path)),
    file: path,
    origin,
    faults: [],
    originOf: (at) => atLine(yaml.lineOf(at)),
  };
}

function refuse(path: string, faults: readonly Omit<Fault, 'key'>[]): FileValues {
  return { ...none, file: path, faults: faults.map((fault) => ({ key: 'file', ...fault })) };
}
