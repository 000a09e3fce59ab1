import type { License } from '../license.ts';

/** Why a request certainly changed nothing at the upstream. */
export type NotAppliedReason =
  /** Nothing was sent (name resolution, connection refused, TLS), or the request came back to this agent. */
  | 'unreachable'
  /** A firewall asked for a proof that we are human: nothing reached the upstream. */
  | 'challenged'
  /**
   * 400, 422: the upstream will never accept the request. The operation is not sent again: it is dead, or held if an
   * earlier attempt may have been applied.
   */
  | 'refused'
  /** 404: the upstream does not know the license key or coupon. */
  | 'missing'
  /** 401, 403. */
  | 'unauthorized'
  /** 429, or 409 because an earlier attempt is under way: it is not known what became of that. */
  | 'throttled'
  /** 4xx from a cache on the way: it says nothing about the upstream now. */
  | 'cached'
  /**
   * Any other 4xx with a JSON object as its body, such as 409. A license change is sent again later; the creation of a
   * coupon ends as with `refused`. Also: the list of coupons cannot be read completely.
   */
  | 'rejected';

/** The request changed nothing at the upstream. */
export type NotApplied = {
  outcome: 'not_applied';
  reason: NotAppliedReason;
  /** HTTP status; null if there was no response. */
  status: number | null;
  /** Status and message, for the log and the outbox. */
  detail: string;
  /** The upstream's own message; absent if there was none. */
  message?: string;
  /** The code of the upstream's problem, and the reasons that it gives; absent if there are none. */
  code?: string;
  reasons?: readonly string[];
  /** As in `Applied`. */
  epoch?: string;
  /** What the refusal says about the license key; absent if it says nothing. */
  license?: Pick<License, 'enabled' | 'extra' | 'expiresAt'>;
  retryAfterMs: number | null;
  /** Present if the request was not sent because nothing may be sent now. This does not count as a failure. */
  isHeldBack?: true;
};

/** It is unknown whether the request was applied. */
export type Ambiguous = {
  outcome: 'ambiguous';
  /** HTTP status; null if no complete response came. */
  status: number | null;
  detail: string;
  retryAfterMs: number | null;
  /** Present if the response was longer than the limit. */
  isTooLarge?: true;
};

/** A valid response of the upstream says that the request was applied. */
export type Applied<Value> = {
  outcome: 'applied';
  value: Value;
  /** When the upstream confirmed the value (epoch ms). */
  confirmedAt: number;
  /** A cache answered a read. Callers may see the value, but it is never the base of a send or a reconciliation. */
  isCached: boolean;
  /** The instance that answered, if the upstream is Latchkey. */
  instance?: string;
  /** The history of the upstream's store (`Latchkey-Epoch`); absent if the upstream is no Latchkey. */
  epoch?: string;
  /** The revision of the license, if the upstream is Latchkey. */
  revision?: number;
  /** The revision at which this change was carried out; absent if it changed nothing. */
  appliedRevision?: number;
  /** The cursor of the next page of a list, if the upstream is Latchkey and has more. */
  nextCursor?: string;
  /** Absent: the response shows the license. Some responses of stores show only whether it is enabled, or its count. */
  shows?: 'enabled' | 'uses';
  /** Present if the upstream is an agent with undelivered changes to this record. */
  isPending?: true;
};

/** The outcome of a request to the upstream. */
export type Outcome<Value> = Applied<Value> | NotApplied | Ambiguous;

/** Whether the upstream could not be reached or could not answer (it did not refuse). */
export function isOutage(outcome: Outcome<unknown>): outcome is Ambiguous | NotApplied {
  return outcome.outcome === 'ambiguous' || (outcome.outcome === 'not_applied' && !isRefused(outcome));
}

/** Whether a page came in place of a response with 4xx: a gateway does not let the path pass. */
export function isPage(outcome: Outcome<unknown>): boolean {
  if (outcome.outcome !== 'ambiguous' || outcome.status === null) return false;
  return outcome.status >= 400 && outcome.status < 500;
}

/** Whether the upstream refused a request, as opposed to never receiving it. */
export function isRefused({ reason }: NotApplied): boolean {
  return reason !== 'unreachable' && reason !== 'challenged';
}

/** Whether the upstream itself answered: a cache or a firewall is not the upstream. */
export function isResponse(outcome: Outcome<unknown>): boolean {
  if (outcome.outcome === 'applied') return !outcome.isCached;
  if (outcome.outcome === 'ambiguous' || outcome.status === null) return false;
  return isRefused(outcome) && outcome.reason !== 'cached';
}

/** Whether the upstream does not know the key or coupon. */
export function isMissing(outcome: Outcome<unknown>): outcome is NotApplied {
  return outcome.outcome === 'not_applied' && outcome.reason === 'missing';
}

/** Whether the upstream applied the request, or answered that the key or coupon does not exist. */
export function isSuccess(outcome: Outcome<unknown>): boolean {
  return isResponse(outcome) && (outcome.outcome === 'applied' || isMissing(outcome));
}

/** The outcome of a request that was held back. */
export function notSent(reason: NotAppliedReason, detail: string): NotApplied {
  return { ...notApplied(reason, detail), isHeldBack: true };
}

/** Whether a request was held back. */
export function isHeldBack(outcome: Outcome<unknown>): boolean {
  return outcome.outcome === 'not_applied' && outcome.isHeldBack === true;
}

/** The outcome of a request that was certainly not applied and has no response. */
export function notApplied(reason: NotAppliedReason, detail: string): NotApplied {
  return { outcome: 'not_applied', reason, status: null, detail, retryAfterMs: null };
}

/** When the breaker opens, and how long until it admits a probe (setting `sync.breaker`). */
export type BreakerPolicy = { failures: number; openMs: number };

/** The default of `sync.breaker`. */
export const defaultBreakerPolicy: BreakerPolicy = { failures: 5, openMs: 30_000 };

/*
 * A circuit breaker in front of an upstream.
 *
 *            failures in a row                 the probe is due
 *   closed ─────────────────────▶ open ─────────────────────────────────▶ half_open
 *     ▲                           │  ▲                                     │    │
 *     └───────── an answer ───────┴──┼──────────────────── an answer ──────┘    │
 *                                    └───────────────────── a failure ──────────┘
 *
 * One bad key does not stop the others. For example: the upstream answers 500 to every request about KEY-1, because
 * of a broken record. However often KEY-1 is requested, that counts as one failure until another subject fails or
 * succeeds. If nothing answers at all, each failure counts.
 */

/** The state of a breaker. Times are monotonic ms (`Clock.monotonic`). */
export type Breaker =
  /** `lastFailed`: the subject of the last failure that had a response; its next failure does not count. */
  | { state: 'closed'; failures: number; lastFailed: string | null }
  /** Nothing is sent until `probeAt`; then one read. */
  | { state: 'open'; probeAt: number }
  /** The probe is under way. If it has no result by `probeAt`, another one may be sent. */
  | { state: 'half_open'; probeAt: number };

export type BreakerEvent =
  | { type: 'success' }
  /** `subject`: the key or coupon of the request, if something answered; null if nothing did. */
  | { type: 'failure'; at: number; subject: string | null }
  /** A probe is about to be sent. */
  | { type: 'probe'; at: number }
  /** The knowledge is old, for example because the machine was suspended: the next probe is due at once. */
  | { type: 'expire'; at: number };

type BreakerOf<State extends Breaker['state']> = Extract<Breaker, { state: State }>;
type EventOf<Type extends BreakerEvent['type']> = Extract<BreakerEvent, { type: Type }>;

type Transitions = {
  [State in Breaker['state']]: {
    [Type in BreakerEvent['type']]: (
      breaker: BreakerOf<State>,
      event: EventOf<Type>,
      policy: BreakerPolicy,
    ) => Breaker;
  };
};

export const closedBreaker: Breaker = { state: 'closed', failures: 0, lastFailed: null };

const closed = (): Breaker => closedBreaker;
const opened = (_: Breaker, { at }: { at: number }, { openMs }: BreakerPolicy): Breaker => ({
  state: 'open',
  probeAt: at + openMs,
});
const probed = (_: Breaker, { at }: { at: number }, { openMs }: BreakerPolicy): Breaker => ({
  state: 'half_open',
  probeAt: at + openMs,
});
const probedWhenDue: typeof probed = (breaker, event, policy) =>
  breaker.state !== 'closed' && event.at >= breaker.probeAt ? probed(breaker, event, policy) : breaker;
const due = (_: Breaker, { at }: { at: number }): Breaker => ({ state: 'open', probeAt: at });
const same = (breaker: Breaker): Breaker => breaker;

function failed(
  breaker: BreakerOf<'closed'>,
  event: EventOf<'failure'>,
  { failures: enough, openMs }: BreakerPolicy,
): Breaker {
  const { at, subject } = event;
  if (subject !== null && subject === breaker.lastFailed) return breaker;
  const failures = breaker.failures + 1;
  if (failures < enough) return { state: 'closed', failures, lastFailed: subject ?? breaker.lastFailed };
  // Something answers. A probe shows at once whether it fails for everything or for a few bad keys.
  return { state: 'open', probeAt: subject === null ? at + openMs : at };
}

/** The state machine of the breaker: state × event. A missing cell does not compile. */
export const breakerTransitions: Transitions = {
  closed: { success: closed, failure: failed, probe: same, expire: same },
  open: {
    // The response to a request that was sent before the breaker opened: the upstream is there after all.
    success: closed,
    failure: same,
    probe: probedWhenDue,
    expire: due,
  },
  half_open: { success: closed, failure: opened, probe: probedWhenDue, expire: due },
};

/** The breaker after an event. No other function changes a breaker. */
export function nextBreaker(breaker: Breaker, event: BreakerEvent, policy: BreakerPolicy): Breaker {
  // Each cell has exact types; the compiler cannot correlate the two lookups.
  const cell = breakerTransitions[breaker.state][event.type] as (
    breaker: Breaker,
    event: BreakerEvent,
    policy: BreakerPolicy,
  ) => Breaker;
  return cell(breaker, event, policy);
}
