import type { KeyPath } from '../errors.ts';

/** A mapping before it is parsed. */
export type Tree = { readonly [key: string]: unknown };

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Drops keys that are null, which means "not given", and makes a list of a mapping from 0, 1, 2 …: single items of a
 * list come from the environment in that form (`LATCHKEY_PRODUCTS__0__KEY`).
 */
export function normalized(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalized);
  if (!isTree(value)) return value;
  const entries = Object.entries(value)
    .filter(([, item]) => (item ?? null) !== null)
    .map(([key, item]): [string, unknown] => [key, normalized(item)]);
  const isList = entries.length > 0 && entries.every(([key], index) => key === String(index));
  return isList ? entries.map(([, item]) => item) : Object.fromEntries(entries);
}

/** Returns the value at a path; `undefined` if there is none. */
export function valueAt(root: unknown, path: KeyPath): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Tree)[String(step)];
  }
  return value;
}

/** Merges a stronger value into a weaker one: mappings key by key, single items into a list; other values replace. */
export function overlay(base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  if (!isTree(over)) return over;
  const byPosition = Array.isArray(base) && Object.keys(over).every((key) => /^\d+$/.test(key));
  const merged = new Map<string, unknown>(isTree(base) || byPosition ? Object.entries(base) : []);
  for (const [key, value] of Object.entries(over)) merged.set(key, overlay(merged.get(key), value));
  return Object.fromEntries(merged);
}

/** Lists the single values in a tree with their paths; an empty list counts as a single value. */
export function leavesOf(value: unknown, path: KeyPath = []): readonly (readonly [KeyPath, unknown])[] {
  if (typeof value !== 'object' || value === null) return [[path, value]];
  if (Array.isArray(value) && value.length === 0) return [[path, '[]']];
  return Object.entries(value).flatMap(([key, item]) =>
    leavesOf(item, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

export function isDistinct(names: readonly unknown[]): boolean {
  return new Set(names).size === names.length;
}
