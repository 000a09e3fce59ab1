import { readEnvironment } from './environment.ts';
import type { Fault, KeyPath } from './fault/fault.ts';
import { anchorPaths, type FileSources, readConfigurationFile } from './file/file.ts';
import { isTree, normalized, overlay, type Tree, valueAt } from './file/tree.ts';
import { defaultsOf } from './place.ts';

/** Everything that a configuration can come from. */
export interface Sources extends FileSources {
  /** What the command line sets, in the file's own names and shape; `undefined` is not set. */
  readonly flags?: Tree | undefined;
  /** Whether every user of the machine may read a file that is there; not asked on Windows. */
  readonly isWorldReadable?: (path: string) => boolean;
}

/** What gives a value. */
export type NamedBy = 'flag' | 'environment' | 'file' | 'default';

/** All values as they were given, before any is parsed. */
export interface Raw {
  /** With the defaults that depend on the machine, without nulls, lists as lists. */
  readonly tree: Tree;
  /** The file that was read. */
  readonly file: string | null;
  /** What stands in that file. */
  readonly fileTree: unknown;
  /** Says where the file was named, as far as `file` is not null. */
  readonly fileOrigin: string;
  /** Where a file was looked for that nobody named, up to the place that had it. */
  readonly places: readonly string[];
  /** Says where the value at a path comes from. */
  readonly originOf: (path: KeyPath) => string;
  /** What names the state directory. */
  readonly stateNamedBy: NamedBy;
}

interface Layer {
  readonly name: Exclude<NamedBy, 'default'>;
  readonly tree: unknown;
  readonly originOf: (path: KeyPath) => string;
}

/**
 * Lays flags over environment over file (src/config/README.md, Where a value comes from).
 *
 * Relative paths of flags and environment are made absolute from the working directory.
 */
export function readSources(sources: Sources): { readonly raw: Raw; readonly faults: readonly Fault[] } {
  const { flags = {}, directory } = sources;
  const environment = readEnvironment(sources.environment);
  const strongest: readonly Layer[] = [
    { name: 'flag', tree: anchorPaths(flags, directory), originOf: () => 'flag' },
    { name: 'environment', ...environment, tree: anchorPaths(environment.tree, directory) },
  ];
  const file = readConfigurationFile(sources, strongest.some(namesState));
  const layers: readonly Layer[] = [...strongest, { name: 'file', ...file }];
  const given = normalized(layers.reduceRight<unknown>((base, layer) => overlay(base, layer.tree), {}));
  const tree = isTree(given) ? given : {};
  return {
    raw: {
      tree: overlay(defaultsOf(sources, tree), tree) as Tree,
      file: file.file,
      fileTree: file.tree,
      fileOrigin: file.origin,
      places: file.places,
      stateNamedBy: layers.find(namesState)?.name ?? 'default',
      originOf: (path) => findOrigin(layers, path),
    },
    faults: [...file.faults, ...environment.faults],
  };
}

function namesState({ tree }: Layer): boolean {
  return (valueAt(tree, ['state_dir']) ?? null) !== null;
}

/** Names the strongest layer that holds the path, or the nearest thing around it. */
function findOrigin(layers: readonly Layer[], path: KeyPath): string {
  for (let length = path.length; length > 0; length -= 1) {
    const around = path.slice(0, length);
    const layer = layers.find(({ tree }) => valueAt(tree, around) !== undefined);
    if (layer !== undefined) return layer.originOf(around);
  }
  return 'default';
}
