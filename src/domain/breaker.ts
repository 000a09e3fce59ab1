/** When the breaker opens, and how long until it lets a probe through (configuration `sync.breaker`). */
export type BreakerPolicy = { failures: number; openMs: number };

/** The default of `sync.breaker`. */
export const defaultBreakerPolicy: BreakerPolicy = { failures: 5, openMs: 30_000 };

/** A circuit breaker in front of an upstream. Times are `Clock.steady` ms. */
export type Breaker =
  | { state: 'closed'; failures: number }
  /** Nothing goes up until `probeAt`, and then one read. */
  | { state: 'open'; probeAt: number }
  /** The probe is under way. */
  | { state: 'half_open' };

export type BreakerEvent =
  { type: 'success' } | { type: 'failure'; at: number } | { type: 'probe'; at: number };

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

export const closedBreaker: Breaker = { state: 'closed', failures: 0 };

const closed = (): Breaker => closedBreaker;
const opened = (_: Breaker, { at }: { at: number }, { openMs }: BreakerPolicy): Breaker => ({
  state: 'open',
  probeAt: at + openMs,
});
const same = (breaker: Breaker): Breaker => breaker;

/** The machine of the breaker: state × event. A missing cell does not compile. */
export const breakerTransitions: Transitions = {
  closed: {
    success: closed,
    failure: ({ failures }, event, policy) =>
      failures + 1 >= policy.failures
        ? opened({ state: 'closed', failures }, event, policy)
        : { state: 'closed', failures: failures + 1 },
    probe: same,
  },
  open: {
    // An answer to a request that was sent before it opened: the upstream is there after all.
    success: closed,
    failure: same,
    probe: (breaker, { at }) => (at >= breaker.probeAt ? { state: 'half_open' } : breaker),
  },
  half_open: { success: closed, failure: opened, probe: same },
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
