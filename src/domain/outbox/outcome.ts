/** Why a request to the upstream certainly changed nothing there. */
export type NotAppliedReason =
  /** Nothing left us (name resolution, connection refused, TLS), or it came back to ourselves. */
  | 'unreachable'
  /** A firewall asked us to prove that we are no robot: nothing reached the upstream. */
  | 'challenged'
  /** 400, 422: it will never be taken. */
  | 'refused'
  /** 404: the upstream does not know it. */
  | 'missing'
  /** 401, 403. */
  | 'unauthorized'
  /** 429. */
  | 'throttled'
  /** 4xx out of a cache on the way: it says nothing of the upstream as it is now. */
  | 'cached'
  /** Any other 4xx with a JSON object as its body. */
  | 'rejected';

/** The request changed nothing at the upstream. */
export type NotApplied = {
  outcome: 'not_applied';
  reason: NotAppliedReason;
  /** HTTP status; null when nothing was answered. */
  status: number | null;
  /** For the log and the outbox: the status and the message. */
  detail: string;
  /** The upstream's own words; absent: the upstream said nothing, or did not answer. */
  message?: string;
  retryAfterMs: number | null;
  /** The request was not sent, because nothing may be sent at the moment: it is no failure; absent: it was sent. */
  isHeldBack?: true;
};

/** It is unknown whether the request was applied. */
export type Ambiguous = {
  outcome: 'ambiguous';
  /** HTTP status; null when no whole answer came. */
  status: number | null;
  detail: string;
  retryAfterMs: number | null;
  /** The answer was longer than any that is read; absent: it was not. */
  isTooLarge?: true;
};

/** The upstream's own answer, in the specification's shape, says it was applied. */
export type Applied<Value> = {
  outcome: 'applied';
  value: Value;
  /** Epoch ms of the authoritative snapshot behind the answer. */
  confirmedAt: number;
  /** A cache on the way answered a read: callers may see it, but it is no base for sending and reconciles nothing. */
  isCached: boolean;
  /** Which instance answered, where the upstream is a Latchkey; absent where it does not tell. */
  instance?: string;
  /** Of a page of a list: the cursor of the next page, where the upstream is a Latchkey and others follow. */
  nextCursor?: string;
  /** The upstream is an agent that has changes of this record to deliver itself; absent: it does not say so. */
  isPending?: true;
};

/** What became of one request to the upstream. */
export type Outcome<Value> = Applied<Value> | NotApplied | Ambiguous;

/** Whether the upstream could not be reached or could not answer, as opposed to having refused. */
export function isOutage(outcome: Outcome<unknown>): outcome is Ambiguous | NotApplied {
  return outcome.outcome === 'ambiguous' || (outcome.outcome === 'not_applied' && !isRefused(outcome));
}

/** Whether a request was refused, as opposed to one that never reached the upstream. */
export function isRefused({ reason }: NotApplied): boolean {
  return reason !== 'unreachable' && reason !== 'challenged';
}

/** Whether the upstream itself answered: without a credential nothing is even sent, and neither a cache nor a firewall is it. */
export function isAnswer(outcome: Outcome<unknown>): boolean {
  if (outcome.outcome === 'applied') return !outcome.isCached;
  if (outcome.outcome === 'ambiguous' || outcome.status === null) return false;
  return isRefused(outcome) && outcome.reason !== 'cached';
}

/** Whether the upstream does not know what was asked for. */
export function isMissing(outcome: Outcome<unknown>): boolean {
  return outcome.outcome === 'not_applied' && outcome.reason === 'missing';
}

/** Whether the upstream did what was asked, or knows that there is no such thing. */
export function isSuccess(outcome: Outcome<unknown>): boolean {
  return isAnswer(outcome) && (outcome.outcome === 'applied' || isMissing(outcome));
}

/** The outcome of a request that is held back. */
export function heldBack(reason: NotAppliedReason, detail: string): NotApplied {
  return { ...notApplied(reason, detail), isHeldBack: true };
}

/** Whether a request was held back. */
export function isHeldBack(outcome: Outcome<unknown>): boolean {
  return outcome.outcome === 'not_applied' && outcome.isHeldBack === true;
}

/** The outcome where it is known without an answer that nothing was applied. */
export function notApplied(reason: NotAppliedReason, detail: string): NotApplied {
  return { outcome: 'not_applied', reason, status: null, detail, retryAfterMs: null };
}
