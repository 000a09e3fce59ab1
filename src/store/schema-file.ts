import { readFileSync } from 'node:fs';
import { getAsset, isSea } from 'node:sea';

/** The number of the schema in `schema.sql`, on both engines. Only previews wrote the schemas before it. */
export const firstSchema = 5;

/**
 * Reads the first schema of an engine, `src/store/sqlite/schema.sql` or `src/store/postgres/schema.sql`. The npm package
 * has the file under `dist/store/`, the single executable as an asset of the same name.
 */
export function readSchema(engine: 'sqlite' | 'postgres'): string {
  const path = schemaPath(engine);
  if (isSea()) return getAsset(path, 'utf8');
  // This file, and every bundle that contains it, is one folder below the root of `src` or `dist`.
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}

/** The path of a schema below `src`, below `dist`, and among the assets of the executable. */
export function schemaPath(engine: 'sqlite' | 'postgres'): string {
  return `store/${engine}/schema.sql`;
}
