import { LRUCache } from 'lru-cache';
import { bucketAt, spend, waitOf, type Bucket, type Rate } from '../../domain/token-bucket.ts';
import { ProblemError } from '../problem-error.ts';

/** How many names are cached. `max` would allocate memory for all of them at once. */
const limit = { maxSize: 10_000, sizeCalculation: () => 1 };

/** A token bucket for each name, in bounded memory: the least recently used bucket is evicted. */
export class NamedRate {
  readonly #buckets = new LRUCache<string, Bucket>(limit);
  readonly #perSecond: () => number;
  readonly #elapsed: () => number;

  /** `perSecond` is called each time; 0: no limit. `elapsed`: monotonic ms. */
  constructor(perSecond: () => number, elapsed: () => number) {
    this.#perSecond = perSecond;
    this.#elapsed = elapsed;
  }

  /** Takes a token and returns 0. Without a token, returns how many ms to wait for the next. */
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

/** The configured requests a second. `rate` 0: no limit. */
export type RateSettings = { readonly rate: number; readonly failedRate: number };

/** The rate limits of callers. All listeners of a process share one instance. */
export class Rates {
  /** The requests of each credential. */
  readonly requests: NamedRate;
  readonly #failures: NamedRate;

  constructor(settings: () => RateSettings, elapsed: () => number) {
    this.requests = new NamedRate(() => settings().rate, elapsed);
    this.#failures = new NamedRate(() => settings().failedRate, elapsed);
  }

  /** The problem of a request with a wrong credential. Requests with a valid credential do not count here. */
  wrongCredential(code: 'credentials_invalid' | 'token_expired'): ProblemError {
    // Clients that guess cannot be distinguished, so they share one bucket.
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

/** A 429 with a `Retry-After` of `waitMs`. */
export function rateLimited(detail: string, waitMs: number): ProblemError {
  return new ProblemError('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) });
}
