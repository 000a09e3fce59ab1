import { closedBreaker, nextBreaker, type Breaker, type BreakerPolicy } from '../domain/breaker.ts';
import { isOutage, type Outcome } from '../domain/outcome.ts';
import type { Clock, Log } from '../service/ports.ts';
import type { UpstreamStatus } from '../service/status.ts';
import { Rate, type Errand } from './rate.ts';

/** How long a product rests after the upstream refused its credential, before a read asks again, in ms. */
const productPauseMs = 15 * 60_000;

export type UplinkSettings = {
  /** Requests a second. */
  rate: number;
  breaker: BreakerPolicy;
};

export type UplinkParts = {
  clock: Clock;
  log: Log;
  settings: () => UplinkSettings;
  /** Called when what waits for the upstream may go on: after an outage, a pause, a refused credential. */
  onRecovery: () => void;
  /** Called when the time of the next probe may have changed. */
  onChange: () => void;
  lifetime: AbortSignal;
};

/** Whether a request may go up now; if not, why, and when to ask again (`Clock.steady`; null: when told). */
export type Admission = { admitted: true } | { admitted: false; detail: string; againAt: number | null };

/** A read that shows whether the upstream is there: when (`Clock.steady`), and for which product, if for one. */
export type Probe = { at: number; productKey: string | null };

/** The one way to the upstream: its rate, its breaker, the waits it asked for, and what is known of its state. */
export class Uplink {
  readonly #parts: UplinkParts;
  readonly #rate: Rate;
  #breaker: Breaker = closedBreaker;
  #pausedByPerson = false;
  /** `Retry-After` is a floor for everything that is sent to this upstream. */
  #notBefore = 0;
  #pausedProducts = new Map<string, { retryAt: number }>();
  #state: 'up' | 'down' | 'unknown' = 'unknown';
  #since: number;
  #lastSuccessAt: number | null = null;
  #lastError: string | null = null;
  #lastRequestAt: number;

  constructor(parts: UplinkParts) {
    this.#parts = parts;
    this.#rate = new Rate(parts.clock, () => parts.settings().rate, parts.lifetime);
    this.#since = parts.clock.now();
    this.#lastRequestAt = parts.clock.steady();
  }

  /** Whether anything but a probe may go up at this moment. */
  admission(): Admission {
    if (this.#pausedByPerson) return { admitted: false, detail: 'sync is paused', againAt: null };
    if (this.#breaker.state !== 'closed') {
      const detail = `the upstream is away (${this.#lastError ?? 'no answer'})`;
      return { admitted: false, detail, againAt: null };
    }
    return this.#floor();
  }

  /** Waits for this errand's turn; a caller is not kept waiting for what will not be soon. */
  async admit(errand: Errand, signal: AbortSignal): Promise<Admission> {
    const before = this.admission();
    if (!before.admitted) return before;
    await this.#rate.turn(errand, signal);
    const after = this.admission();
    if (!after.admitted) this.#rate.giveBack();
    return after;
  }

  /** Waits for the turn of a probe, which passes an open breaker once its time has come. */
  async admitProbe(signal: AbortSignal): Promise<Admission> {
    const { clock, settings } = this.#parts;
    const event = { type: 'probe', at: clock.steady() } as const;
    this.#breaker = nextBreaker(this.#breaker, event, settings().breaker);
    if (this.#pausedByPerson || this.#breaker.state === 'open') return this.admission();
    const floor = this.#floor();
    if (!floor.admitted) return floor;
    await this.#rate.turn('push', signal);
    return { admitted: true };
  }

  /** Gives back an admission of which no use was made. */
  giveBack(): void {
    this.#rate.giveBack();
  }

  /** Takes note of what became of a request, sent under a product's secret where there is one. */
  observe(outcome: Outcome<unknown>, productKey: string | null): void {
    const { clock } = this.#parts;
    this.#lastRequestAt = clock.steady();
    if (outcome.outcome !== 'applied' && outcome.retryAfterMs !== null) {
      this.#notBefore = Math.max(this.#notBefore, clock.steady() + outcome.retryAfterMs);
    }
    if (isOutage(outcome)) this.#observeOutage(outcome);
    else this.#observeAnswer();
    if (productKey !== null) this.#observeCredential(outcome, productKey);
  }

  /** The products whose operations wait for their credential to be accepted. */
  pausedProducts(): readonly string[] {
    return [...this.#pausedProducts.keys()];
  }

  /** The next read to make when nothing else asks for one. */
  nextProbe(probeMs: number): Probe {
    const idle: Probe = { at: this.#lastRequestAt + probeMs, productKey: null };
    if (this.#breaker.state === 'open') return { at: this.#breaker.probeAt, productKey: null };
    return [...this.#pausedProducts].reduce<Probe>(
      (next, [productKey, { retryAt }]) => (retryAt < next.at ? { at: retryAt, productKey } : next),
      idle,
    );
  }

  /** Stops everything upward until `resume`. */
  pause(): void {
    this.#pausedByPerson = true;
  }

  /** Goes on after `pause`, and asks again where a credential was refused. */
  resume(): void {
    this.#pausedByPerson = false;
    this.#pausedProducts.clear();
    this.#parts.onRecovery();
  }

  /** Overrides the breaker; never a wait that the upstream asked for. */
  hurry(): void {
    this.#breaker = closedBreaker;
    this.#parts.onRecovery();
  }

  status(): UpstreamStatus {
    return {
      state: this.#pausedByPerson ? 'paused' : this.#state,
      since: this.#since,
      protocol: 'plain',
      breaker: this.#breaker.state,
      lastSuccessAt: this.#lastSuccessAt,
      lastError: this.#lastError,
      pausedProducts: this.pausedProducts(),
    };
  }

  #floor(): Admission {
    if (this.#notBefore <= this.#parts.clock.steady()) return { admitted: true };
    return { admitted: false, detail: 'the upstream asked to wait', againAt: this.#notBefore };
  }

  #observeOutage(outcome: Outcome<unknown>): void {
    const { clock, settings, log, onChange } = this.#parts;
    this.#lastError = outcome.outcome === 'applied' ? null : outcome.detail;
    if (this.#state !== 'down') {
      this.#become('down');
      log.warn({ error: this.#lastError }, 'the upstream is away: answering from local state');
    }
    const failure = { type: 'failure', at: clock.steady() } as const;
    this.#breaker = nextBreaker(this.#breaker, failure, settings().breaker);
    onChange();
  }

  #observeAnswer(): void {
    const { clock, settings, log, onRecovery } = this.#parts;
    const wasAway = this.#state === 'down' || this.#breaker.state !== 'closed';
    this.#lastSuccessAt = clock.now();
    this.#breaker = nextBreaker(this.#breaker, { type: 'success' }, settings().breaker);
    if (this.#state !== 'up') this.#become('up');
    if (!wasAway) return;
    log.info({}, 'the upstream answers again');
    onRecovery();
  }

  #observeCredential(outcome: Outcome<unknown>, productKey: string): void {
    const { clock, log, onRecovery, onChange } = this.#parts;
    if (outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized') {
      this.#lastError = `product ${productKey}: ${outcome.detail}`;
      if (!this.#pausedProducts.has(productKey)) {
        const hint = 'set the right secret in the configuration and reload, or run: latchkey sync resume';
        log.error({ product: productKey, error: outcome.detail, hint }, 'the upstream refuses our secret');
      }
      this.#pausedProducts.set(productKey, { retryAt: clock.steady() + productPauseMs });
      onChange();
    } else if (!isOutage(outcome) && this.#pausedProducts.delete(productKey)) {
      log.info({ product: productKey }, 'the upstream accepts our secret again');
      onRecovery();
    }
  }

  #become(state: 'up' | 'down'): void {
    this.#state = state;
    this.#since = this.#parts.clock.now();
  }
}
