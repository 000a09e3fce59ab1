import { z } from 'zod';
import { type Configuration, settings } from './configuration.ts';
import { formatKey, type KeyPath } from './errors.ts';
import type { Tree } from './file/tree.ts';
import { entryOf, itemOf, keysOf } from './section.ts';
import { Secret } from './value/secret.ts';

/**
 * Writes a configuration in the names and notation of the file: every key, with secrets as `***`.
 *
 * Read again, it gives the same configuration except for the secrets.
 */
export function effective(configuration: Configuration): Tree {
  return z.encode(settings, configuration);
}

/** The keys, as an operator writes them, whose values differ. Secrets are compared as well, and never shown. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  const [old, current] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...old.keys(), ...current.keys()])].filter((key) => old.get(key) !== current.get(key));
}

function valuesOf(configuration: Configuration): ReadonlyMap<string, string> {
  const values = new Map<string, string>();

  function collect(type: z.ZodType, value: unknown, path: KeyPath): void {
    const item = itemOf(type);
    const entry = entryOf(type);
    const keys = keysOf(type);
    if (item !== null && Array.isArray(value) && value.length > 0) {
      value.forEach((each, index) => collect(item, each, [...path, index]));
    } else if (entry !== null) {
      for (const [name, each] of Object.entries(value as Tree)) collect(entry, each, [...path, name]);
    } else if (keys !== null && value !== null) {
      for (const { key, name, type: each } of keys) collect(each, (value as Tree)[name], [...path, key]);
    } else values.set(formatKey(path), value instanceof Secret ? value.reveal() : JSON.stringify(value));
  }

  collect(settings, configuration, []);
  return values;
}
