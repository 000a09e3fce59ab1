import { TokenBucket, type Rate } from '../../../domain/token-bucket.ts';
import type { Clock } from '../../../service/ports.ts';
import { isSuccess } from '../../../domain/outbox/outcome.ts';
import type { LicenseFetcher } from '../../../sync/license-fetcher.ts';
import type { SyncOptions } from '../../../sync/options.ts';
import { Wake } from '../../../sync/waiting.ts';
import { hourMs } from '../../../domain/time.ts';

/** When a license key is read after a hint, in ms: the API of a store may lag behind its events. */
const delaysMs = [0, 30_000, 300_000] as const;
/** How long after the start of a read of a key a hint about the same key may read again, in ms. */
const gapMs = 10_000;
/** How long to wait after a read that brought no answer, in ms. */
const retryMs = 30_000;
/** How long a read is retried that brings no answer, in ms. The refresh loop reads the key in any case. */
const patienceMs = hourMs;
/** How many license keys may wait at the same time. */
const maxWaiting = 10_000;
/** How many seconds of the rate may be used at once. */
const burstSeconds = 5;
/** How many reads may be under way at the same time. */
const maxUnderWay = 8;

/** Hints get a quarter of the rate of the upstream, and less than one caller gets for unknown keys. */
export function hintRate({ rate, lookups }: Pick<SyncOptions, 'rate' | 'lookups'>): Rate {
  const perSecond = Math.min(rate / 4, lookups.perSecond / 2);
  return { perSecond, burst: Math.max(1, perSecond * burstSeconds) };
}

type Hint = {
  productId: string;
  licenseKey: string;
  /** When to read (monotonic ms), the next first. */
  due: number[];
  hintedAt: number;
  /** When the last read because of a hint began; null: there was none. */
  readAt: number | null;
};

type HintedReadsParts = {
  clock: Clock;
  fetcher: Pick<LicenseFetcher, 'fetch'>;
  /** Makes the next refresh of a license key due at once. */
  hastenRefresh: (licenseKey: string) => Promise<unknown>;
  /** How many reads a second hints may cause. */
  rate: () => Rate;
};

/**
 * Reads license keys because somebody outside hints that they have changed. Hints may be forged or repeated, so they have
 * a rate of their own, and a license key has at most one entry. A restart forgets the reads that wait; a key whose read
 * brought no answer is then refreshed.
 */
export class HintedReads {
  readonly #parts: HintedReadsParts;
  readonly #hints = new Map<string, Hint>();
  readonly #wake: Wake;
  readonly #bucket = new TokenBucket();

  constructor(parts: HintedReadsParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
  }

  /** How many license keys wait for a read. */
  get waiting(): number {
    return this.#hints.size;
  }

  /** Reads a license key at once, after 30 s and after 5 min. Returns false if too many keys wait. */
  add(productId: string, licenseKey: string): boolean {
    const now = this.#parts.clock.monotonic();
    const name = `${productId}\n${licenseKey}`;
    const before = this.#hints.get(name);
    if (before === undefined && this.#hints.size >= maxWaiting) return false;
    const readAt = before?.readAt ?? null;
    const [first, ...later] = delaysMs.map((delayMs) => now + delayMs);
    const soon = Math.max(first ?? now, (readAt ?? -Infinity) + gapMs);
    // A repeated hint delays no read that waits already.
    const due = [Math.min(soon, before?.due[0] ?? soon), ...later];
    this.#hints.set(name, { productId, licenseKey, due, hintedAt: now, readAt });
    this.#wake.up();
    return true;
  }

  /** Reads until the signal aborts, then until the reads under way have ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    const underWay = new Set<Promise<void>>();
    while (!signal.aborted) {
      const next = this.#next();
      const waitMs = next === null ? Infinity : (next.due[0] ?? 0) - clock.monotonic();
      if (next === null || waitMs > 0) {
        await this.#wake.wait(waitMs, signal);
      } else if (await this.#takeTurn(signal)) {
        next.due.shift();
        next.readAt = clock.monotonic();
        const reading = this.#read(next).finally(() => underWay.delete(reading));
        underWay.add(reading);
        if (underWay.size >= maxUnderWay) await Promise.race(underWay);
      }
    }
    await Promise.all(underWay);
  }

  /** The hint that is due first. */
  #next(): Hint | null {
    let next: Hint | null = null;
    for (const hint of this.#hints.values())
      if (hint.due[0] !== undefined && (next?.due[0] ?? Infinity) > hint.due[0]) next = hint;
    return next;
  }

  /** Waits for a token of the rate. Returns false if there was none yet: another hint may be due by now. */
  async #takeTurn(signal: AbortSignal): Promise<boolean> {
    const { clock, rate } = this.#parts;
    const waitMs = this.#bucket.take(rate(), clock.monotonic());
    if (waitMs > 0) await clock.sleep(waitMs, signal).catch(() => undefined);
    return waitMs === 0;
  }

  async #read(hint: Hint): Promise<void> {
    const { clock, fetcher, hastenRefresh } = this.#parts;
    const { productId, licenseKey } = hint;
    const outcome = await fetcher.fetch(productId, licenseKey, 'refresh', 'webhooks');
    const isAnswered = isSuccess(outcome);
    // On a full disk the hint lasts as long as this process.
    if (!isAnswered) await hastenRefresh(licenseKey).catch(() => undefined);
    const now = clock.monotonic();
    const name = `${productId}\n${licenseKey}`;
    // Another event about the same key may have come in the meantime.
    const current = this.#hints.get(name) ?? hint;
    if (!isAnswered && now - current.hintedAt < patienceMs)
      current.due = [now + retryMs, ...current.due.filter((at) => at > now + retryMs)];
    if (current.due.length === 0) this.#hints.delete(name);
    this.#wake.up();
  }
}
