import type { DialectName } from '../../domain/dialect.ts';
import type { Dialect } from './dialect.ts';
import { payhip } from './payhip.ts';
import { specification } from './specification.ts';

/** Every dialect that an upstream may speak, by its name in the configuration (`upstream.dialect`). */
export const dialects: Readonly<Record<DialectName, Dialect>> = { specification, payhip };
