/*
 * Order and repetition of requests that one party numbers and repeats until they are answered. The other party keeps one
 * row: the last number, the digest of that request, and its answer. Leases number the requests of a device.
 */

/** The last request that was carried out; number 0: none yet. */
export type LastRequest = { seq: number; digest: string };

/** `challenge`: the challenge of the last refusal `out_of_sequence`; null: none. */
export type NumberedRequest = { seq: number; digest: string; challenge: string | null };

/**
 * - `next`: carry the request out.
 * - `continued`: carry it out as well; it follows a challenge, so the sender's history was interrupted.
 * - `repeated`: send the stored answer again.
 * - `reused`: change nothing; the last number belongs to another request.
 * - `out_of_sequence`: change nothing, and send the last number and a challenge.
 */
export type SequenceDecision = 'next' | 'continued' | 'repeated' | 'reused' | 'out_of_sequence';

/** `challenge`: the challenge that a request after `last` can answer. */
export function decideSequence(
  last: LastRequest,
  request: NumberedRequest,
  challenge: string,
): SequenceDecision {
  if (request.seq === last.seq) return request.digest === last.digest ? 'repeated' : 'reused';
  if (request.seq !== last.seq + 1) return 'out_of_sequence';
  if (request.challenge === null) return 'next';
  return request.challenge === challenge ? 'continued' : 'out_of_sequence';
}
