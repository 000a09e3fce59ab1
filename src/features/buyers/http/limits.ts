import { setImmediate } from 'node:timers/promises';
import { NamedRateLimiter } from '../../../http/entry/rate-limits.ts';
import type { RateLimiter } from '../../../http/app.ts';

/**
 * The limits of the page. They are checked before a request is looked at, so that guesses cost this process little and
 * learn nothing.
 */
export type PageLimits = {
  /** Requests of one network that send a form. */
  readonly networks: RateLimiter;
  /** Attempts to open one license key: of one network, so that nobody locks out the buyer, and of all together. */
  readonly keys: RateLimiter;
  readonly keysOfAll: RateLimiter;
  /** Forms of an open page about one license, of all networks together: to sign an answer costs more than a guess. */
  readonly licenses: RateLimiter;
  /** Mails with lost license keys to one e-mail address: two at first, then one in 12 hours. */
  readonly mails: RateLimiter;
  /** Requests for such mails, of one network and of all together. */
  readonly recoveries: RateLimiter;
  readonly allRecoveries: RateLimiter;
};

export function pageLimits(monotonic: () => number): PageLimits {
  const limit = (perSecond: number, burst: number): RateLimiter =>
    new NamedRateLimiter(() => perSecond, monotonic, burst);
  return {
    networks: limit(0.5, 40),
    keys: limit(1 / 60, 20),
    keysOfAll: limit(0.5, 300),
    licenses: limit(0.5, 40),
    mails: limit(1 / 43_200, 2),
    recoveries: limit(1 / 300, 5),
    allRecoveries: limit(0.5, 60),
  };
}

/** Lets one request pass in each turn of the event loop, so that a verify does not wait for many guesses. */
export function turnstile(): () => Promise<void> {
  let last = Promise.resolve();
  return async () => {
    last = last.then(() => setImmediate());
    await last;
  };
}
