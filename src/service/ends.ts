import type { End, ReportedEnd } from '../domain/time.ts';
import type { AuthorityTransaction, Awaitable } from './tables.ts';

/** How many ends one commit reports. */
const maxReported = 5_000;

/** `name`: of the setting that says what was reported. `from` and `until`: epoch ms. */
type Due = { name: string; from?: number; until: number };

type ReadEnds = (after: ReportedEnd, until: number, limit: number) => Awaitable<End[]>;

/** Reads what ends until an instant and was not reported before. The next call reads what is over the limit. */
export async function endsToReport(
  settings: AuthorityTransaction['settings'],
  { name, from = -Infinity, until }: Due,
  read: ReadEnds,
): Promise<End[]> {
  const stored = await settings.get(name);
  const reported = stored === null ? { at: until, key: null } : reportedEnd(stored);
  // A restored store, or a clock that was set back, must not stop the reports.
  const at = Math.max(from, Math.min(reported.at, until));
  const found = await read({ at, key: at === reported.at ? reported.key : null }, until, maxReported);
  const last = found.length < maxReported ? undefined : found.at(-1);
  await settings.set(name, last === undefined ? String(until) : `${last.at} ${last.key}`);
  return found;
}

/** A setting is an instant, after a space with the last key that was reported at this instant. */
function reportedEnd(stored: string): ReportedEnd {
  const [at, ...key] = stored.split(' ');
  return { at: Number(at), key: key.length === 0 ? null : key.join(' ') };
}
