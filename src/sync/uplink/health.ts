import type { Clock } from '../../service/ports.ts';
import type { UpstreamStatus } from '../../service/status.ts';

type Health = Pick<
  UpstreamStatus,
  'state' | 'since' | 'lastSuccessAt' | 'lastError' | 'lastErrorAt' | 'recoveredAt'
>;

/** Whether the upstream is there, since when, and what went wrong last. It decides nothing: people are told of it. */
export class UpstreamHealth {
  readonly #clock: Clock;
  #state: 'up' | 'down' | 'unknown' = 'unknown';
  #since: number;
  #lastSuccessAt: number | null = null;
  /** What went wrong last, when, and since when all is well again (epoch ms; null: it is not). */
  #trouble: { detail: string; at: number; overAt: number | null } | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  get state(): 'up' | 'down' | 'unknown' {
    return this.#state;
  }

  /** What went wrong last; null: nothing yet. */
  get lastError(): string | null {
    return this.#trouble?.detail ?? null;
  }

  become(state: 'up' | 'down'): void {
    this.#state = state;
    this.#since = this.#clock.now();
  }

  failed(detail: string): void {
    this.#trouble = { detail, at: this.#clock.now(), overAt: null };
  }

  /** `isUnhindered`: nothing holds up what would go up, so that the last trouble is over if the upstream is there. */
  succeeded(isUnhindered: boolean): void {
    this.#lastSuccessAt = this.#clock.now();
    if (this.#trouble !== null && this.#state === 'up' && isUnhindered)
      this.#trouble.overAt ??= this.#lastSuccessAt;
  }

  status(): Health {
    return {
      state: this.#state,
      since: this.#since,
      lastSuccessAt: this.#lastSuccessAt,
      lastError: this.lastError,
      lastErrorAt: this.#trouble?.at ?? null,
      recoveredAt: this.#trouble?.overAt ?? null,
    };
  }
}
