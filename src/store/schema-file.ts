import { readFileSync } from 'node:fs';
import { getAsset, isSea } from 'node:sea';

/** The number of the schema in `schema.sql`, on both engines. Only previews wrote the schemas before it. */
export const firstSchema = 5;

const paths = { sqlite: 'store/sqlite/schema.sql', postgres: 'features/postgres/store/schema.sql' } as const;

/**
 * Reads the first schema of an engine. The npm package has the file under the same path in `dist`, the single executable
 * as an asset of the same name.
 */
export function readSchema(engine: 'sqlite' | 'postgres'): string {
  const path = schemaPath(engine);
  if (isSea()) return getAsset(path, 'utf8');
  // This file, and every bundle that contains it, is one folder below the root of `src` or `dist`.
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}

/** The path of a schema below `src`, below `dist`, and among the assets of the executable. */
export function schemaPath(engine: 'sqlite' | 'postgres'): string {
  return paths[engine];
}
