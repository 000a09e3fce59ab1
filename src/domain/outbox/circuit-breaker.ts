/** When the breaker opens, and how long until it lets a probe through (configuration `sync.breaker`). */
export type BreakerPolicy = { failures: number; openMs: number };

/** The default of `sync.breaker`. */
export const defaultBreakerPolicy: BreakerPolicy = { failures: 5, openMs: 30_000 };

/*
 * A circuit breaker in front of an upstream.
 *
 *            failures in a row                 the probe's time has come
 *   closed ─────────────────────▶ open ─────────────────────────────────▶ half_open
 *     ▲                           │  ▲                                     │    │
 *     └───────── an answer ───────┴──┼──────────────────── an answer ──────┘    │
 *                                    └───────────────────── a failure ──────────┘
 *
 * One bad key harms itself alone. For example: the upstream answers 500 to everything about KEY-1, because of
 * a broken record there. However often KEY-1 is asked for, that is one failure until another subject fails
 * or is answered. When nothing is answered at all, the subject is not to blame, and each failure counts.
 */

/** The state of a breaker. Times are `Clock.elapsed` ms. */
export type Breaker =
  /** `lastFailed`: the subject of the last failure that was answered; its next one does not count. */
  | { state: 'closed'; failures: number; lastFailed: string | null }
  /** Nothing goes up until `probeAt`, and then one read. */
  | { state: 'open'; probeAt: number }
  /** The probe is under way. If nothing is heard of it by `probeAt`, another one may go up. */
  | { state: 'half_open'; probeAt: number };

export type BreakerEvent =
  | { type: 'success' }
  /** `subject`: what the request was about, where something answered; null when nothing did. */
  | { type: 'failure'; at: number; subject: string | null }
  /** A probe is about to be sent. */
  | { type: 'probe'; at: number }
  /** What is known is old (the machine slept): the next probe is due at once. */
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
  // Something answers: whether it fails at everything or at a few bad keys, a probe tells at once.
  return { state: 'open', probeAt: subject === null ? at + openMs : at };
}

/** The machine of the breaker: state × event. A missing cell does not compile. */
export const breakerTransitions: Transitions = {
  closed: { success: closed, failure: failed, probe: same, expire: same },
  open: {
    // An answer to a request that was sent before it opened: the upstream is there after all.
    success: closed,
    failure: same,
    probe: probedWhenDue,
    expire: due,
  },
  half_open: { success: closed, failure: opened, probe: probedWhenDue, expire: due },
};

/** The breaker after an event; the only function that changes one. */
export function nextBreaker(breaker: Breaker, event: BreakerEvent, policy: BreakerPolicy): Breaker {
  // The table is exact per cell; the two lookups together are more than the compiler can correlate.
  const cell = breakerTransitions[breaker.state][event.type] as (
    breaker: Breaker,
    event: BreakerEvent,
    policy: BreakerPolicy,
  ) => Breaker;
  return cell(breaker, event, policy);
}
