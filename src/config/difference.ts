import type { Configuration } from './configuration.ts';
import { kindOf } from './description.ts';
import { formatKey } from './fault/fault.ts';
import { Secret } from './value/secret.ts';
import { writeWith } from './show.ts';
import { leavesOf } from './file/tree.ts';

/** The keys, as an operator writes them, whose values differ; secrets are compared, too, and never shown. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  const [old, current] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...old.keys(), ...current.keys()])].filter((key) => old.get(key) !== current.get(key));
}

function valuesOf(configuration: Configuration): Map<string, string> {
  const plain = writeWith(configuration, (setting, value) =>
    value instanceof Secret ? value.reveal() : kindOf(setting).show(value),
  );
  return new Map(leavesOf(plain).map(([path, value]) => [formatKey(path), String(value)]));
}
