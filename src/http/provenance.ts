import { formatDatetime } from '../domain/datetime.ts';
import type { Provenance } from '../service/answers.ts';

/** The headers about where an answer comes from and how old it is (src/http/README.md, What an agent adds). */
export function provenanceHeaders(provenance: Provenance): Record<string, string> {
  const headers: Record<string, string> = { 'Latchkey-Freshness': provenance.freshness };
  // An authority is no cache: the rest does not apply.
  if (!('pending' in provenance)) return headers;
  const { confirmedAt, graceUntil, pending, cache, ageMs } = provenance;
  if (confirmedAt !== null) headers['Latchkey-Confirmed-At'] = formatDatetime(confirmedAt);
  if (graceUntil !== null) headers['Latchkey-Grace-Until'] = formatDatetime(graceUntil);
  headers['Latchkey-Pending'] = String(pending);
  headers['Age'] = String(Math.max(0, Math.floor(ageMs / 1000)));
  headers['Cache-Status'] = cache === 'hit' ? 'latchkey; hit' : 'latchkey; fwd=miss';
  return headers;
}
