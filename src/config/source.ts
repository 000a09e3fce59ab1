import type { ConfigError, KeyPath } from './errors.ts';
import {
  anchorPaths,
  type FileSources,
  type FileValues,
  readConfigurationFile,
} from './file/configuration-file.ts';
import { isTree, normalized, overlay, type Tree, valueAt } from './file/tree.ts';
import { defaultsOf, type Environment } from './defaults.ts';
import { parseYaml } from './file/yaml.ts';

/** Everything that a configuration can come from. */
export interface Sources extends FileSources {
  /** The settings of the command line, in the names and form of the file; `undefined` means not set. */
  readonly flags?: Tree | undefined;
  /** Whether other users of the machine may read a file. */
  readonly isReadableByOthers?: (path: string) => boolean;
}

export type NamedBy = 'flag' | 'environment' | 'file' | 'default';

/** `origin`: the line of the file or the variable; null: there is none. */
export interface ValueSource {
  readonly source: 'default' | 'file' | 'environment' | 'option';
  readonly origin: string | null;
}

/** The values of all sources, before they are parsed. */
export interface Raw {
  /** With the defaults that depend on the machine, without nulls, lists as lists. */
  readonly tree: Tree;
  readonly file: FileValues;
  /** Says which source sets the value at a path. */
  readonly originOf: (path: KeyPath) => string;
  /** Says which source sets exactly the value at a path. */
  readonly sourceOf: (path: KeyPath) => ValueSource;
  readonly stateNamedBy: NamedBy;
  /** The errors of the file and of the environment. */
  readonly errors: readonly ConfigError[];
}

interface Layer {
  readonly name: Exclude<NamedBy, 'default'>;
  readonly tree: unknown;
  readonly originOf: (path: KeyPath) => string;
}

/**
 * Merges the sources: flags win over the environment, and the environment over the file (src/config/README.md, Where a value comes from).
 *
 * Relative paths of flags and environment are made absolute from the working directory.
 */
export function readSources(sources: Sources): Raw {
  const { flags = {}, directory, platform } = sources;
  const environment = readEnvironment(sources.environment);
  const strongest: readonly Layer[] = [
    { name: 'flag', tree: anchorPaths(flags, directory, platform), originOf: () => 'flag' },
    { name: 'environment', ...environment, tree: anchorPaths(environment.tree, directory, platform) },
  ];
  const file = readConfigurationFile(sources, strongest.some(namesState));
  const layers: readonly Layer[] = [...strongest, { name: 'file', ...file }];
  const input = normalized(layers.reduceRight<unknown>((base, layer) => overlay(base, layer.tree), {}));
  const tree = isTree(input) ? input : {};
  return {
    tree: overlay(defaultsOf(sources, tree), tree) as Tree,
    file,
    stateNamedBy: layers.find(namesState)?.name ?? 'default',
    originOf: (path) => findOrigin(layers, path),
    sourceOf: (path) => sourceIn(layers, path),
    errors: [...file.errors, ...environment.errors],
  };
}

function namesState({ tree }: Layer): boolean {
  return (valueAt(tree, ['state_dir']) ?? null) !== null;
}

/** Names the strongest source that sets the path, or the nearest section around it. */
function findOrigin(layers: readonly Layer[], path: KeyPath): string {
  for (let length = path.length; length > 0; length -= 1) {
    const around = path.slice(0, length);
    const layer = layers.find(({ tree }) => valueAt(tree, around) !== undefined);
    if (layer !== undefined) return layer.originOf(around);
  }
  return 'default';
}

/** A secret that comes from a file is set by its `…_file`, and an item of a list by the whole list. */
function sourceIn(layers: readonly Layer[], path: KeyPath): ValueSource {
  const setting = path.slice(0, 1 + path.findLastIndex((step) => typeof step === 'string'));
  const places = [path, setting, [...setting.slice(0, -1), `${setting.at(-1)}_file`]];
  for (const { name, tree, originOf } of layers) {
    const place = places.find((each) => (valueAt(tree, each) ?? null) !== null);
    if (place === undefined) continue;
    if (name === 'flag') return { source: 'option', origin: null };
    return { source: name, origin: originOf(place).replace(/^environment /, '') };
  }
  return { source: 'default', origin: null };
}

interface EnvironmentValues {
  readonly tree: unknown;
  readonly errors: readonly ConfigError[];
  readonly originOf: (path: KeyPath) => string;
}

interface Variable {
  readonly name: string;
  readonly path: readonly string[];
}

const prefix = 'LATCHKEY_';

/** Variables that are no settings: the name of the file, and what commands and the client library read. */
const others = new Set(['LATCHKEY_CONFIG', 'LATCHKEY_TOKEN', 'LATCHKEY_TOKEN_FILE', 'LATCHKEY_URL']);

/** Kubernetes sets these in every container if a Service is called `latchkey`. */
const kubernetes =
  /^LATCHKEY_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?|PORT=\w+:\/\/.*)(=|$)/;

/**
 * Reads `LATCHKEY_<PATH>` variables, with `__` between levels; an item of a list has its position as a level.
 *
 * A value is text, except for `true`, `false`, and `null` or an empty value (not given). A value that begins with a
 * bracket, a brace or a quotation mark is YAML.
 */
function readEnvironment(environment: Environment): EnvironmentValues {
  const variables: Variable[] = [];
  const errors: ConfigError[] = [];
  let tree: unknown = {};
  const ours = Object.entries(environment).filter(([name]) => name.startsWith(prefix) && !others.has(name));
  for (const [name, text] of ours.sort(byName)) {
    if (text === undefined) continue;
    if (kubernetes.test(`${name}=${text}`)) continue;
    const path = name.slice(prefix.length).toLowerCase().split('__');
    const read = readValue(text);
    if ('error' in read) {
      errors.push({ key: path.join('.'), text: read.error, origin: `environment ${name}` });
      continue;
    }
    variables.push({ name, path });
    tree = overlay(
      tree,
      path.reduceRight<unknown>((value, step) => ({ [step]: value }), read.value),
    );
  }
  return { tree, errors, originOf: (path) => `environment ${nameOf(variables, path)}` };
}

function readValue(text: string): { readonly value: unknown } | { readonly error: string } {
  const plain = text.trim();
  if (plain === '' || plain === 'null' || plain === '~') return { value: null };
  if (plain === 'true' || plain === 'false') return { value: plain === 'true' };
  if (!/^[[{"']/.test(plain)) return { value: plain };
  const yaml = parseYaml(plain);
  return 'value' in yaml ? { value: yaml.value } : { error: yaml[0]?.text ?? 'is not valid YAML' };
}

/** Names the variable that sets a path, or a part of the path. */
function nameOf(variables: readonly Variable[], path: KeyPath): string {
  const near = variables.filter((variable) =>
    variable.path.every((step, index) => index >= path.length || step === String(path[index])),
  );
  return near.at(-1)?.name ?? prefix;
}

function byName([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left.localeCompare(right, 'en', { numeric: true });
}
