import type { RoleName } from '../domain/role.ts';
import type { SectionValue } from './description.ts';
import type { root } from './settings/root.ts';

/**
 * Everything that an operator decides, complete and typed; settings/ describes each value.
 *
 * Names ending in `Ms` are milliseconds, in `Bytes` bytes; rates are requests a second; `null` is
 * "switched off" or "not given". Paths are absolute.
 */
export interface Configuration extends SectionValue<(typeof root)['keys']> {
  /** An agent has an upstream, an authority has none. */
  readonly role: RoleName;
}

export type UpstreamSettings = NonNullable<Configuration['upstream']>;
