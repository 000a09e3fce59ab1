import type { DialectName } from '../../domain/header-names.ts';
import type { Dialect } from './dialect.ts';
import { payhip } from './payhip.ts';
import { specification } from './specification.ts';

/** Every dialect that callers may be answered in, by its name in the configuration (`listen.dialect`). */
export const dialects: Readonly<Record<DialectName, Dialect>> = { specification, payhip };
