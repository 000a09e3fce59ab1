import { readFileSync } from 'node:fs';
import { getAsset, isSea } from 'node:sea';

/** The number of the schema in `schema.sql`, on both engines. Only previews wrote the schemas before it. */
export const firstSchema = 5;

/**
 * Reads the first schema of an engine, by its path below `src`. The npm package has the file under the same path in
 * `dist`, the single executable as an asset of the same name.
 */
export function readSchema(path: string): string {
  if (isSea()) return getAsset(path, 'utf8');
  // This file, and every bundle that contains it, is one folder below the root of `src` or `dist`.
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}
