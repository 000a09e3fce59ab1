import { z } from 'zod';
import type { Address } from './address.ts';
import type { Fault } from './fault.ts';
import { findPlaces } from './place.ts';
import { schemaOf } from './schema.ts';
import { collectFaults, section } from './section.ts';
import { root } from './settings/root.ts';
import { readSources, type Sources } from './source.ts';

/** Where a running daemon is to be found. */
export interface Location {
  readonly stateDir: string;
  readonly socket: string | null;
  readonly tcp: Address | null;
}

/** A location, or what stands in the way of knowing it. */
export type LocationResult =
  | { readonly ok: true; readonly location: Location }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/**
 * Reads only where the daemon listens, without its secrets and whatever else may be wrong.
 *
 * With a state directory among the flags the file need not be readable: `listen.json` in there
 * tells the rest.
 */
export function parseLocation(sources: Sources): LocationResult {
  const { raw, faults } = readSources(sources);
  if (faults.length > 0 && sources.flags?.['state_dir'] === undefined) return { ok: false, faults };
  const places = findPlaces(sources, raw.tree['state_dir']);
  const { state_dir, listen } = root.keys;
  const { tcp, socket } = listen.keys;
  const schema = z.object({
    state_dir: schemaOf(state_dir, places),
    listen: section(z.object({ tcp: schemaOf(tcp, places), socket: schemaOf(socket, places) })),
  });
  const parsed = schema.safeParse(raw.tree);
  return parsed.success
    ? { ok: true, location: { stateDir: parsed.data.state_dir, ...parsed.data.listen } }
    : { ok: false, faults: collectFaults(parsed.error, raw.originOf) };
}
