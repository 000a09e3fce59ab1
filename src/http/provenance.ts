import { formatDatetime } from '../domain/datetime.ts';
import type { Provenance } from '../service/answers.ts';

/** The headers that say how much an answer is worth (contract section 4; Cache-Status: RFC 9211). */
export function provenanceHeaders(provenance: Provenance): Record<string, string> {
  const headers: Record<string, string> = { 'Latchkey-Freshness': provenance.freshness };
  // An authority has nothing more to say: it is not a cache.
  if (!('pending' in provenance)) return headers;
  const { confirmedAt, graceUntil, pending, cache, ageMs } = provenance;
  if (confirmedAt !== null) headers['Latchkey-Confirmed-At'] = formatDatetime(confirmedAt);
  if (graceUntil !== null) headers['Latchkey-Grace-Until'] = formatDatetime(graceUntil);
  headers['Latchkey-Pending'] = String(pending);
  headers['Age'] = String(Math.max(0, Math.floor(ageMs / 1000)));
  headers['Cache-Status'] = cache === 'hit' ? 'latchkey; hit' : 'latchkey; fwd=miss';
  return headers;
}
