import type { Clock } from '../service/ports.ts';
import { keyCache } from './lookup-queue.ts';

/** How long the first 404 about a key is kept, in ms. */
const firstMs = 2_000;
/** How long after the first 404 about a key its store may still be late, in ms. */
const lateMs = 300_000;

/** How many of the last missing keys of a product are known. */
export const maxLatest = 50;

/** When a key was first 404, how long its last 404 is kept, and until when (monotonic ms). */
type Missing = { since: number; keptMs: number; until: number };

/**
 * The 404s that callers got. A store may show a key that it has sold minutes later: at first a 404 is kept for a short time
 * only, so that the buyer does not wait.
 */
export class MissingKeys {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** `freshness.unknown`, in ms. */
  readonly #longestMs: () => number;
  readonly #missing = keyCache<Missing>();
  /** By product: the last keys that were never seen, the latest last. */
  readonly #latest = new Map<string, Set<string>>();

  constructor(clock: Pick<Clock, 'monotonic'>, longestMs: () => number) {
    this.#clock = clock;
    this.#longestMs = longestMs;
  }

  /** Keeps a 404: of a key that was never seen for 2, 4, 8 … s, of any other key for the longest time. */
  add(productId: string, licenseKey: string, wasSeen: boolean): void {
    const name = nameOf(productId, licenseKey);
    const now = this.#clock.monotonic();
    const before = this.#missing.get(name);
    const since = before?.since ?? now;
    const isLate = !wasSeen && now - since < lateMs;
    const longestMs = this.#longestMs();
    const keptMs = isLate
      ? Math.min(longestMs, before === undefined ? firstMs : 2 * before.keptMs)
      : longestMs;
    this.#missing.set(name, { since, keptMs, until: now + keptMs });
    if (!wasSeen) this.#addLatest(productId, licenseKey);
  }

  /** The keys of a product that were never seen, and are answered 404 without a request now: the latest first. */
  latest(productId: string): readonly string[] {
    const latest = [...(this.#latest.get(productId) ?? [])];
    return latest.filter((licenseKey) => this.has(productId, licenseKey)).toReversed();
  }

  has(productId: string, licenseKey: string): boolean {
    return (this.#missing.get(nameOf(productId, licenseKey))?.until ?? -Infinity) > this.#clock.monotonic();
  }

  /** Returns whether callers asked for the key, and got a 404. */
  forget(productId: string, licenseKey: string): boolean {
    this.#latest.get(productId)?.delete(licenseKey);
    return this.#missing.delete(nameOf(productId, licenseKey));
  }

  clear(): void {
    this.#missing.clear();
    this.#latest.clear();
  }

  /** Keeps a few keys, whatever callers guess. */
  #addLatest(productId: string, licenseKey: string): void {
    const latest = this.#latest.get(productId) ?? new Set();
    this.#latest.set(productId, latest);
    // It becomes the latest.
    latest.delete(licenseKey);
    latest.add(licenseKey);
    if (latest.size <= maxLatest) return;
    for (const each of latest) if (!this.has(productId, each)) latest.delete(each);
    const [oldest] = latest;
    if (latest.size > maxLatest && oldest !== undefined) latest.delete(oldest);
  }
}

/** The name of a key of a product. */
export function nameOf(productId: string, licenseKey: string): string {
  return `${productId}\n${licenseKey}`;
}
