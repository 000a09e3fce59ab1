import {
  closedBreaker,
  nextBreaker,
  type Breaker,
  type BreakerEvent,
  type BreakerPolicy,
  isResponse,
  isOutage,
  isSuccess,
  type Ambiguous,
  type NotApplied,
  type Outcome,
} from '../domain/outbox/outcome.ts';
import type { Blocker } from '../domain/outbox/explanation.ts';
import type { Clock, Log } from '../service/ports.ts';
import type { LimiterStatus, UpstreamMeter, UpstreamStatus } from '../service/status.ts';
import { CredentialStates, type CredentialOwner, type CredentialSettings } from './credential-states.ts';
import { RateLimiter, type Priority } from './rate-limiter.ts';

type UpstreamLimiterSettings = CredentialSettings & {
  /** Requests a second. */
  rate: number;
  breaker: BreakerPolicy;
};

type UpstreamLimiterParts = {
  clock: Clock;
  log: Log;
  meter: Pick<UpstreamMeter, 'answered'>;
  settings: () => UpstreamLimiterSettings;
  /** Called when waiting operations may go on: after an outage, a pause or a refused credential. */
  onRecovery: () => void;
  /** Called when more may be sent than before, or when the next probe has another time. */
  onChange: () => void;
  /** Called with the end of a `Retry-After` (monotonic ms, `Clock.monotonic`), which must survive a restart. */
  onRetryAfter: (until: number) => void;
  onState?: ((state: 'up' | 'down') => void) | undefined;
  lifetime: AbortSignal;
};

/**
 * Whether a request may be sent now; if not, why, and when to ask again (monotonic ms; null: the limiter notifies).
 */
export type Admission = { admitted: true } | { admitted: false; detail: string; againAt: number | null };

/**
 * The credential of a request, and its subject: a license key or coupons. `sentAt`: monotonic ms; absent: just now.
 */
type SentRequest = { owner: CredentialOwner; subject: string; sentAt?: number };

/** A read that tests the upstream or a refused credential, and when it is due (monotonic ms). */
export type Probe = { at: number; of: 'upstream' } | { at: number; of: 'credential'; owner: CredentialOwner };

type Health = Pick<
  UpstreamStatus,
  'state' | 'since' | 'lastSuccessAt' | 'lastError' | 'lastErrorAt' | 'recoveredAt'
>;

/**
 * Every request to the upstream asks the limiter first. It knows the rate, the breaker, `Retry-After`, the pause and
 * refused credentials.
 */
export class UpstreamLimiter {
  readonly #parts: UpstreamLimiterParts;
  readonly #rate: RateLimiter;
  #breaker: Breaker = closedBreaker;
  /** Since when a person has paused sync (epoch ms); null if not paused. */
  #pausedAt: number | null = null;
  /** `Retry-After` holds for everything that is sent to this upstream. */
  #notBefore = 0;
  readonly #credentials: CredentialStates;
  /** Whether the upstream is there, since when, and the last error. It is for people and decides nothing. */
  #health: Health;
  #lastRequestAt: number;

  constructor(parts: UpstreamLimiterParts) {
    this.#parts = parts;
    this.#rate = new RateLimiter(parts.clock, () => parts.settings().rate, parts.lifetime);
    this.#credentials = new CredentialStates(parts);
    this.#health = {
      state: 'unknown',
      since: parts.clock.now(),
      lastSuccessAt: null,
      lastError: null,
      lastErrorAt: null,
      recoveredAt: null,
    };
    this.#lastRequestAt = parts.clock.monotonic();
  }

  /** Whether anything but a probe may be sent now. */
  admission(): Admission {
    const permission = this.#permission();
    if (!permission.admitted || this.#breaker.state === 'closed') return permission;
    const detail = `the upstream is away (${this.#health.lastError ?? 'no answer'})`;
    return { admitted: false, detail, againAt: null };
  }

  /** Waits for the turn of this priority. Returns at once if nothing may be sent. */
  async admit(priority: Priority, signal: AbortSignal, requester: string = ''): Promise<Admission> {
    const before = this.admission();
    if (!before.admitted) return before;
    await this.#rate.acquire(priority, signal, requester);
    const after = this.admission();
    if (!after.admitted) this.#rate.giveBack();
    return after;
  }

  /** Waits for the turn of a probe, which passes an open breaker when it is due. */
  async admitProbe(signal: AbortSignal): Promise<Admission> {
    const before = this.#probePermission();
    if (!before.admitted) return before;
    await this.#rate.acquire('delivery', signal);
    const after = this.#probePermission();
    // The breaker changes only when the probe is really sent, so it never waits half open.
    if (after.admitted) this.#move({ type: 'probe', at: this.#parts.clock.monotonic() });
    else this.#rate.giveBack();
    return after;
  }

  /** Gives back an admission that was not used. */
  giveBack(): void {
    this.#rate.giveBack();
  }

  /** Handles the result of a request. */
  observe(outcome: Outcome<unknown>, { owner, subject, sentAt }: SentRequest): void {
    const { clock, meter, onRetryAfter } = this.#parts;
    meter.answered(outcome.outcome);
    this.#lastRequestAt = clock.monotonic();
    if (outcome.outcome !== 'applied' && outcome.retryAfterMs !== null) {
      const until = clock.monotonic() + outcome.retryAfterMs;
      if (until > this.#notBefore) onRetryAfter(until);
      this.waitUntil(until);
    }
    if (isOutage(outcome)) this.#observeOutage(outcome, subject);
    else if (isResponse(outcome)) this.#observeResponse();
    this.#observeCredential(outcome, owner, sentAt ?? clock.monotonic());
    if (isSuccess(outcome)) this.#succeeded();
  }

  /** The refused credentials: their operations wait. */
  refusedCredentials(): readonly CredentialOwner[] {
    return [...this.#credentials.refused().keys()];
  }

  /** Whether a credential is configured. A product may be removed before its operations are delivered. */
  isConfigured(owner: CredentialOwner): boolean {
    return this.#credentials.isConfigured(owner);
  }

  /** Whether a credential is configured and not known to be refused. */
  isAccepted(owner: CredentialOwner): boolean {
    return this.isConfigured(owner) && !this.#credentials.refused().has(owner);
  }

  /** What blocks everything that a credential would send; null if nothing does. */
  blocker(owner: CredentialOwner): Blocker | null {
    if (this.#pausedAt !== null) return { cause: 'paused' };
    if (!this.isConfigured(owner)) return { cause: 'credential_missing' };
    const refused = this.#credentials.refused().get(owner);
    if (refused !== undefined) return { cause: 'credential_refused', until: refused.retryAt };
    if (this.#notBefore > this.#parts.clock.monotonic())
      return { cause: 'retry_after', until: this.#notBefore };
    return this.#breaker.state === 'closed' ? null : { cause: 'upstream_away', until: this.#breaker.probeAt };
  }

  /** The next probe. */
  nextProbe(probeMs: number): Probe {
    const next = this.#nextProbe(probeMs);
    return { ...next, at: Math.max(next.at, this.#notBefore) };
  }

  /** Sends nothing until `until` (monotonic ms): the upstream asked for that, perhaps before a restart. */
  waitUntil(until: number): void {
    this.#notBefore = Math.max(this.#notBefore, until);
  }

  /** Sends nothing until `resume`. */
  pause(): void {
    this.#pausedAt ??= this.#parts.clock.now();
  }

  /** Ends a pause, and tests refused credentials again. */
  resume(): void {
    this.#pausedAt = null;
    this.retryCredentials();
  }

  /** Since when this process has the credentials that it has now (epoch ms). */
  get credentialsSince(): number {
    return this.#credentials.since;
  }

  /** Tests refused credentials again: they may be others now. */
  retryCredentials(): void {
    this.#credentials.reset();
    this.#parts.onRecovery();
  }

  /** Makes the next probe due at once, because the knowledge is old: the machine was suspended, for example. */
  probeNow(): void {
    const { clock, onChange } = this.#parts;
    this.#lastRequestAt = -Infinity;
    this.#move({ type: 'expire', at: clock.monotonic() });
    onChange();
  }

  /** Closes the breaker because a person asks for it; a `Retry-After` still holds. */
  closeBreaker(): void {
    this.#breaker = closedBreaker;
    this.#parts.onRecovery();
  }

  status(): LimiterStatus {
    const paused = this.#pausedAt === null ? {} : { state: 'paused' as const, since: this.#pausedAt };
    return {
      ...this.#health,
      ...paused,
      breaker: this.#breaker.state,
      retryAfterUntil: this.#wallClock(this.#notBefore),
      nextAttemptAt: this.#nextAttemptAt(),
      pausedProducts: this.refusedCredentials().filter((owner) => owner !== null),
      couponsPaused: this.#credentials.refused().has(null),
    };
  }

  #nextAttemptAt(): number | null {
    if (this.#pausedAt !== null || this.#breaker.state !== 'open') return null;
    const { clock } = this.#parts;
    return this.#wallClock(Math.max(this.#breaker.probeAt, this.#notBefore)) ?? clock.now();
  }

  /** Converts a monotonic time (`Clock.monotonic`) to epoch ms, for people; null if the time is over. */
  #wallClock(at: number): number | null {
    const { clock } = this.#parts;
    const leftMs = at - clock.monotonic();
    return leftMs > 0 ? clock.now() + leftMs : null;
  }

  /** Whether the pause and `Retry-After` let anything be sent; ignores the breaker. */
  #permission(): Admission {
    if (this.#pausedAt !== null) return { admitted: false, detail: 'sync is paused', againAt: null };
    if (this.#notBefore <= this.#parts.clock.monotonic()) return { admitted: true };
    return { admitted: false, detail: 'the upstream asked to wait', againAt: this.#notBefore };
  }

  #probePermission(): Admission {
    const permission = this.#permission();
    if (!permission.admitted || this.#breaker.state === 'closed') return permission;
    const isDue = this.#breaker.probeAt <= this.#parts.clock.monotonic();
    return isDue ? permission : this.admission();
  }

  #nextProbe(probeMs: number): Probe {
    if (this.#breaker.state !== 'closed') return { at: this.#breaker.probeAt, of: 'upstream' };
    const idleAt = this.#credentials.areAllRefused() ? Infinity : this.#lastRequestAt + probeMs;
    return [...this.#credentials.refused()].reduce<Probe>(
      (next, [owner, { retryAt }]) => (retryAt < next.at ? { at: retryAt, of: 'credential', owner } : next),
      { at: idleAt, of: 'upstream' },
    );
  }

  #move(event: BreakerEvent): void {
    this.#breaker = nextBreaker(this.#breaker, event, this.#parts.settings().breaker);
  }

  #observeOutage(outcome: Ambiguous | NotApplied, subject: string): void {
    const { clock, log, onChange } = this.#parts;
    const isAnswered = outcome.status !== null;
    const wasProbe = this.#breaker.state === 'half_open';
    this.#failed(outcome.detail);
    this.#move({ type: 'failure', at: clock.monotonic(), subject: isAnswered ? subject : null });
    // A failure of one key alone says nothing about the upstream, but a failed probe does.
    if (this.#health.state !== 'down' && (!isAnswered || wasProbe)) {
      this.#setState('down');
      log.warn({ error: outcome.detail }, 'the upstream is unavailable: answering from local state');
    }
    onChange();
  }

  #observeResponse(): void {
    const { log, onRecovery, onChange } = this.#parts;
    const before = this.#health.state;
    const wasClosed = this.#breaker.state === 'closed';
    this.#move({ type: 'success' });
    if (before !== 'up') {
      this.#setState('up');
      if (before === 'down') log.info({}, 'the upstream answers again');
      // This includes the first response after a start: the previous process may have stored waits because of an
      // outage.
      onRecovery();
    } else if (!wasClosed) {
      onChange();
    }
  }

  #observeCredential(outcome: Outcome<unknown>, owner: CredentialOwner, sentAt: number): void {
    const { onRecovery, onChange } = this.#parts;
    const news = this.#credentials.observe(outcome, owner, sentAt);
    if (news === 'accepted') onRecovery();
    if (news !== 'refused' || outcome.outcome === 'applied') return;
    this.#failed(outcome.detail);
    onChange();
  }

  #setState(state: 'up' | 'down'): void {
    this.#health = { ...this.#health, state, since: this.#parts.clock.now() };
    this.#parts.onState?.(state);
  }

  #failed(lastError: string): void {
    const lastErrorAt = this.#parts.clock.now();
    this.#health = { ...this.#health, lastError, lastErrorAt, recoveredAt: null };
  }

  /** The last error is over if the upstream answers and nothing blocks requests. */
  #succeeded(): void {
    const { state, lastError, recoveredAt } = this.#health;
    const now = this.#parts.clock.now();
    const isUnhindered = this.#breaker.state === 'closed' && this.#credentials.refused().size === 0;
    const isOver = lastError !== null && state === 'up' && isUnhindered;
    this.#health = { ...this.#health, lastSuccessAt: now, recoveredAt: recoveredAt ?? (isOver ? now : null) };
  }
}
