import { formatDatetime } from '../domain/datetime.ts';
import { provenanceHeaderNames as names } from '../domain/header-names.ts';
import type { Provenance } from '../service/answers.ts';

/** The headers about where an answer comes from and how old it is (src/http/README.md, Agent headers). */
export function provenanceHeaders(provenance: Provenance): Record<string, string> {
  const headers: Record<string, string> = { [names.freshness]: provenance.freshness };
  // An authority is no cache: the rest does not apply.
  if (!('pending' in provenance)) return headers;
  const { confirmedAt, graceUntil, pending, cache, ageMs } = provenance;
  if (confirmedAt !== null) headers[names.confirmedAt] = formatDatetime(confirmedAt);
  if (graceUntil !== null) headers[names.graceUntil] = formatDatetime(graceUntil);
  headers[names.pending] = String(pending);
  headers['Age'] = presentAge(ageMs);
  headers['Cache-Status'] = cache === 'hit' ? 'latchkey; hit' : 'latchkey; fwd=miss';
  return headers;
}

/** The value of `Age`: whole seconds. */
export function presentAge(ageMs: number): string {
  return String(Math.max(0, Math.floor(ageMs / 1000)));
}
