/** What is known about a license key besides its row. `retryAt`, `waitFrom` and `waitedAt`: monotonic ms. */
export type KeyState = {
  /** When the next request is due (epoch ms). */
  dueAt: number;
  retryAt: number;
  failures: number;
  lastError: string | null;
  /** How many exchanges about the key are under way or wait for their turn. */
  busy: number;
  /** Whether a request is wanted although none is due. */
  isAsked: boolean;
  /** Ends the wait at the issuer; null: none is under way. */
  waiting: AbortController | null;
  canWait: boolean;
  waitFrom: number;
  waitedAt: number;
  refreshedAt: number;
  /** The warning that was logged last: the expiry and the days. */
  warned: string;
};

export function newKeyState(facts: Pick<KeyState, 'dueAt' | 'canWait'>): KeyState {
  return {
    ...facts,
    retryAt: 0,
    failures: 0,
    lastError: null,
    busy: 0,
    isAsked: false,
    waiting: null,
    waitFrom: 0,
    waitedAt: 0,
    refreshedAt: -Infinity,
    warned: '',
  };
}
