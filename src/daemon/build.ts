import { isSea } from 'node:sea';
import { newestSchema } from '../store/sqlite/files/migrations.ts';
import { version } from '../config/version.ts';

/** The versions that a bug report needs. */
export interface Build {
  readonly version: string;
  readonly node: string;
  readonly sqlite: string;
  readonly platform: string;
  /** The number of the newest known schema. */
  readonly schema: number;
  readonly build: 'source' | 'package' | 'executable';
}

export function describeBuild(): Build {
  return {
    version,
    node: process.versions.node,
    sqlite: process.versions['sqlite'] ?? 'none',
    platform: `${process.platform}-${process.arch}`,
    schema: newestSchema,
    build: isSea() ? 'executable' : import.meta.filename.endsWith('.ts') ? 'source' : 'package',
  };
}
