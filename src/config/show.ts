import type { Configuration } from './configuration.ts';
import { type Description, kindOf, nameOf, type Setting } from './description.ts';
import { root } from './settings/root.ts';
import type { Tree } from './file/tree.ts';

/**
 * Writes a configuration in the file's own names and notation, every key, secrets as `***`.
 *
 * Read again, it gives the same configuration, secrets apart.
 */
export function effective(configuration: Configuration): Tree {
  return writeWith(configuration, (setting, value) => kindOf(setting).show(value));
}

/** Writes a configuration in the file's own names, each single value as `write` says. */
export function writeWith(
  configuration: Configuration,
  write: (setting: Setting, value: unknown) => unknown,
): Tree {
  function writePart(description: Description, value: unknown): unknown {
    if (description.kind === 'list')
      return (value as readonly unknown[]).map((item) => writePart(description.items, item));
    if (description.kind !== 'section') return write(description, value);
    if (value === null) return null;
    return Object.fromEntries(
      Object.entries(description.keys).map(([key, each]) => [
        key,
        writePart(each, (value as Tree)[nameOf(key, each)]),
      ]),
    );
  }
  return writePart(root, configuration) as Tree;
}
