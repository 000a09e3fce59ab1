import { z } from 'zod';
import type { Address } from './value/address.ts';
import type { ConfigError } from './errors.ts';
import { collectErrors, describeIssue } from './issues.ts';
import { endpoints } from './settings/listen.ts';
import { path } from './types.ts';
import { isTree, valueAt } from './file/tree.ts';
import { type NamedBy, readSources, type Sources } from './source.ts';

/** Where to find a running daemon. */
export interface Location {
  readonly stateDir: string;
  readonly socket: string | null;
  readonly tcp: Address | null;
  /** Whether the data is in a database (`store.postgres`) instead of the state directory. */
  readonly hasDatabase: boolean;
  /** Whether the daemon is an agent. */
  readonly hasUpstream: boolean;
  /** The source that sets the state directory. */
  readonly namedBy: NamedBy;
  /** The configuration file that was read. */
  readonly file: string | null;
  /** The default places that were searched, up to the one that has a file. */
  readonly places: readonly string[];
}

/** A location, or the errors that prevent finding it. */
export type LocationResult =
  | { readonly ok: true; readonly location: Location }
  | { readonly ok: false; readonly errors: readonly ConfigError[] };

const schema = z.object({ state_dir: path, listen: z.object(endpoints) });

/**
 * Reads only where the daemon listens: secrets are not needed, and other settings may have errors.
 *
 * If a flag names the state directory, the file need not be readable: `listen.json` in that directory has the
 * addresses.
 */
export function parseLocation(sources: Sources): LocationResult {
  const { raw, errors } = readSources(sources);
  if (errors.length > 0 && sources.flags?.['state_dir'] === undefined) return { ok: false, errors };
  const parsed = schema.safeParse(raw.tree, { error: describeIssue });
  if (!parsed.success) return { ok: false, errors: collectErrors(parsed.error, raw.originOf) };
  const { file, places, stateNamedBy: namedBy } = raw;
  const { state_dir: stateDir, listen: listeners } = parsed.data;
  const hasDatabase = isTree(valueAt(raw.tree, ['store', 'postgres']));
  const hasUpstream = isTree(valueAt(raw.tree, ['upstream']));
  const location = { stateDir, ...listeners, hasDatabase, hasUpstream, namedBy, file, places };
  return { ok: true, location };
}
