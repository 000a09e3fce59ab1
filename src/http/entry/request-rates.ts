import { LRUCache } from 'lru-cache';
import { bucketAt, giveBack, spend, waitOf, type Bucket, type Rate } from '../../domain/token-bucket.ts';
import { ProblemError } from '../problem-error.ts';

/** How many names are remembered. By `max` there would be room for all of them from the start. */
const limit = { maxSize: 10_000, sizeCalculation: () => 1 };
/** For so many seconds' worth a credential can look up unknown keys at once. */
const missesBurstS = 10;

/** A token bucket for each of many names, in bounded memory: the least recently used name is forgotten. */
export class NamedRate {
  readonly #buckets = new LRUCache<string, Bucket>(limit);
  readonly #perSecond: () => number;
  readonly #steady: () => number;
  readonly #burstS: number;

  /** `perSecond` is asked anew each time, 0 is no limit; `steady` is in ms; the burst is of so many seconds. */
  constructor(perSecond: () => number, steady: () => number, burstS: number = 1) {
    this.#perSecond = perSecond;
    this.#steady = steady;
    this.#burstS = burstS;
  }

  /** Takes one; gives 0, or how many ms are to wait when none is left. */
  take(name: string): number {
    const waitMs = this.waitOf(name);
    if (waitMs === 0) this.charge(name);
    return waitMs;
  }

  /** How many ms until one can be taken. */
  waitOf(name: string): number {
    const rate = this.#rate();
    return rate === null ? 0 : waitOf(this.#bucket(name, rate), rate);
  }

  /** Takes one also when none is left: the debt has to flow in first. */
  charge(name: string): void {
    const rate = this.#rate();
    if (rate !== null) this.#buckets.set(name, spend(this.#bucket(name, rate)));
  }

  /** Puts back what was taken for nothing. */
  giveBack(name: string, count: number): void {
    const rate = this.#rate();
    if (rate !== null) this.#buckets.set(name, giveBack(this.#bucket(name, rate), rate, count));
  }

  #rate(): Rate | null {
    const perSecond = this.#perSecond();
    return perSecond === 0 ? null : { perSecond, burst: Math.max(1, perSecond * this.#burstS) };
  }

  #bucket(name: string, rate: Rate): Bucket {
    return bucketAt(this.#buckets.get(name), rate, this.#steady());
  }
}

/** Requests a second, as configured; of `requests` 0 is no limit. */
export type RateSettings = { readonly rate: number; readonly misses: number; readonly failedRate: number };

/** What callers may do how often; one for all listeners of a process. */
export class Rates {
  /** Requests of a credential. */
  readonly requests: NamedRate;
  /** Keys that a credential asked an agent for and that its upstream does not know. */
  readonly misses: NamedRate;
  readonly #failures: NamedRate;

  constructor(settings: () => RateSettings, steady: () => number) {
    this.requests = new NamedRate(() => settings().rate, steady);
    this.misses = new NamedRate(() => settings().misses, steady, missesBurstS);
    this.#failures = new NamedRate(() => settings().failedRate, steady);
  }

  /** What ends a request with a wrong credential; nobody who sends a right one is slowed by it. */
  wrongCredential(code: 'credentials_invalid' | 'token_expired'): ProblemError {
    // Those who guess cannot be told apart: they share one rate.
    const waitMs = this.#failures.take('');
    return waitMs > 0
      ? rateLimited('Too many wrong credentials are sent.', waitMs)
      : new ProblemError(code, wrong[code]);
  }
}

const wrong = {
  credentials_invalid: 'This credential is not known here.',
  token_expired: 'This token has expired.',
} as const;

/** 429, with the time after which it is worth another try. */
export function rateLimited(detail: string, waitMs: number): ProblemError {
  return new ProblemError('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) });
}
