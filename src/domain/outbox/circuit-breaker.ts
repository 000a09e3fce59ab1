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
