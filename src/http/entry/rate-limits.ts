import { LRUCache } from 'lru-cache';
import { TokenBucket, type Rate } from '../../domain/token-bucket.ts';
import {
  type KnownCredential,
  type CredentialCache,
  type Credentials,
  type SentCredential,
  cacheKeyOf,
} from '../../service/access/credential.ts';
import type { Announcer } from '../../service/writer.ts';
import type { RateLimiter, RateLimiters } from '../app.ts';

/** How many credentials are cached, and how many names have a token bucket. */
const maxNames = 10_000;

/** Caches accepted credentials until a commit changes any credential. Wrong ones are not cached: attackers send many. */
export class AnnouncedCredentialCache implements CredentialCache {
  readonly #changes: Announcer;

  constructor(changes: Announcer) {
    this.#changes = changes;
  }

  cached(credentials: Credentials): Credentials {
    const resolvedCredentials = new LRUCache<string, KnownCredential>({ max: maxNames });
    let generation = 0;
    this.#changes.subscribe((changes) => {
      if (changes.every((change) => typeof change === 'object')) return;
      generation += 1;
      resolvedCredentials.clear();
    });
    const read = async (sent: SentCredential): Promise<KnownCredential | null> => {
      const readIn = generation;
      const knownCredential = await credentials.find(sent);
      if (knownCredential !== null && readIn === generation)
        resolvedCredentials.set(cacheKeyOf(sent), knownCredential);
      return knownCredential;
    };
    return {
      find: (sent) => resolvedCredentials.get(cacheKeyOf(sent)) ?? read(sent),
      use: (knownCredential) => credentials.use(knownCredential),
    };
  }
}

/** A token bucket for each name, in bounded memory: the least recently used bucket is evicted. */
export class NamedRateLimiter implements RateLimiter {
  readonly #buckets = new LRUCache<string, TokenBucket>({ max: maxNames });
  readonly #perSecond: () => number;
  readonly #monotonic: () => number;
  readonly #burst: number;

  /** `perSecond` is called each time; 0: no limit. `monotonic`: monotonic ms. `burst`: at least the tokens of a second. */
  constructor(perSecond: () => number, monotonic: () => number, burst = 1) {
    this.#perSecond = perSecond;
    this.#monotonic = monotonic;
    this.#burst = burst;
  }

  take(name: string): number {
    const perSecond = this.#perSecond();
    if (perSecond === 0) return 0;
    const rate: Rate = { perSecond, burst: Math.max(this.#burst, perSecond) };
    const bucket = this.#buckets.get(name) ?? new TokenBucket();
    this.#buckets.set(name, bucket);
    return bucket.take(rate, this.#monotonic());
  }
}

/** The configured requests per second; 0: no limit. */
type RateSettings = { readonly rate: number; readonly failedRate: number };

export function rateLimiters(settings: () => RateSettings, monotonic: () => number): RateLimiters {
  return {
    requests: new NamedRateLimiter(() => settings().rate, monotonic),
    failures: new NamedRateLimiter(() => settings().failedRate, monotonic),
  };
}
