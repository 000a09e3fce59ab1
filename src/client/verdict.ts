import type { AgentAwayError, ProblemError } from './error.ts';
import type { License, Provenance } from './license.ts';

/** Who says so: the agent, or the file of what it said last (`LastKnown`). */
export type VerdictSource = 'agent' | 'last_known';

/** The key may be used. */
export interface Valid extends Provenance {
  readonly verdict: 'valid';
  readonly license: License;
  readonly source: VerdictSource;
}

/** The key was disabled or refunded. */
export interface Disabled {
  readonly verdict: 'refused';
  readonly reason: 'disabled';
  readonly license: License;
  readonly source: VerdictSource;
}

/** There is no such key of this product. A store does not tell another product's key from an unknown one. */
export interface NotFound {
  readonly verdict: 'refused';
  readonly reason: 'not_found';
  readonly license: null;
  readonly source: VerdictSource;
}

/**
 * Nobody can say now; it is not a "no". `agent_away`: the agent did not answer in time; `unknown`: it never saw the
 * key, and the store is away; `expired`: the store confirmed the key too long ago; `busy`: it asks to try again later.
 */
export interface Undetermined {
  readonly verdict: 'undetermined';
  readonly reason: 'agent_away' | 'unknown' | 'expired' | 'busy';
  readonly license: null;
  readonly error: AgentAwayError | ProblemError | null;
}

/** What is to be thought of a license key. */
export type Verdict = Valid | Disabled | NotFound | Undetermined;
