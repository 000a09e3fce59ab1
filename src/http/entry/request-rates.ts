import { LRUCache } from 'lru-cache';
import { bucketAt, spend, waitOf, type Bucket, type Rate } from '../../domain/token-bucket.ts';
import { ProblemError } from '../problem-error.ts';

/** How many names are remembered. By `max` there would be room for all of them from the start. */
const limit = { maxSize: 10_000, sizeCalculation: () => 1 };

/** A token bucket for each of many names, in bounded memory: the least recently used name is forgotten. */
export class NamedRate {
  readonly #buckets = new LRUCache<string, Bucket>(limit);
  readonly #perSecond: () => number;
  readonly #elapsed: () => number;

  /** `perSecond` is asked again each time, 0 is no limit; `elapsed` is in ms. */
  constructor(perSecond: () => number, elapsed: () => number) {
    this.#perSecond = perSecond;
    this.#elapsed = elapsed;
  }

  /** Takes one; gives 0, or how many ms are to wait when none is left. */
  take(name: string): number {
    const perSecond = this.#perSecond();
    if (perSecond === 0) return 0;
    const rate: Rate = { perSecond, burst: Math.max(1, perSecond) };
    const bucket = bucketAt(this.#buckets.get(name), rate, this.#elapsed());
    const waitMs = waitOf(bucket, rate);
    if (waitMs === 0) this.#buckets.set(name, spend(bucket));
    return waitMs;
  }
}

/** Requests a second, as configured; of `requests` 0 is no limit. */
export type RateSettings = { readonly rate: number; readonly failedRate: number };

/** What callers may do how often; one for all listeners of a process. */
export class Rates {
  /** Requests of a credential. */
  readonly requests: NamedRate;
  readonly #failures: NamedRate;

  constructor(settings: () => RateSettings, elapsed: () => number) {
    this.requests = new NamedRate(() => settings().rate, elapsed);
    this.#failures = new NamedRate(() => settings().failedRate, elapsed);
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
