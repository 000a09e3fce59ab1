/** How often something may happen: `burst` times at once, `perSecond` times a second in the long run. */
export type Rate = { perSecond: number; burst: number };

/** A token bucket, full at first. Its rate may change. `now`: ms of a clock, always the same. */
export class TokenBucket {
  /** Below 0, the bucket is in debt. */
  #left = Infinity;
  #at = 0;

  /** Takes `count` tokens, if there is at least one, and returns 0; otherwise returns how many ms to wait for one. */
  take(rate: Rate, now: number, count: number = 1): number {
    const waitMs = this.waitMs(rate, now);
    if (waitMs === 0) this.#left -= count;
    return waitMs;
  }

  /** Puts tokens back. */
  giveBack(rate: Rate, now: number, count: number): void {
    this.#refill(rate, now);
    this.#left = Math.min(rate.burst, this.#left + count);
  }

  /** The time until there is a token, in ms. */
  waitMs(rate: Rate, now: number): number {
    this.#refill(rate, now);
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) / rate.perSecond) * 1000);
  }

  #refill({ perSecond, burst }: Rate, now: number): void {
    const gained = (Math.max(0, now - this.#at) / 1000) * perSecond;
    this.#left = Math.min(burst, this.#left + gained);
    this.#at = now;
  }
}
