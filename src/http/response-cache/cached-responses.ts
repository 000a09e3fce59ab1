import { LRUCache } from 'lru-cache';
import type { CacheableLicense } from '../response.ts';
import type { KnownCredential } from '../../service/access/credential.ts';
import type { Change } from '../../service/tables.ts';

/** How many responses are cached: the most recently used. */
const maxResponses = 10_000;

/** In characters. A target is a path and a license key; a longer one is not worth its memory. */
const maxTargetLength = 1_000;

/** A 200 response as it was sent: its headers as names and values in turn. */
export type CachedResponse = {
  readonly headers: readonly string[];
  readonly body: string;
  readonly route: string;
  /** The credential that the response was sent to. */
  readonly knownCredential: KnownCredential;
  readonly cacheable: CacheableLicense;
};

/** A license, until a commit changes it. Responses to several aliases of a license key share one. */
type Validity = { isValid: boolean };

type Entry = { response: CachedResponse; license: Validity };

/**
 * Responses by the key of their request. Each change is announced before its own response is sent, and invalidates the
 * responses that depend on it, so a cached response is never older than a response to a write.
 */
export class CachedResponses {
  readonly #entries = new LRUCache<string, Entry>({ max: maxResponses });
  readonly #licenses = new LRUCache<string, Validity>({
    max: maxResponses,
    dispose: (license) => {
      license.isValid = false;
    },
  });
  readonly #seen = new RecentlySeen();
  #generation = 0;

  /** Increases with each invalidation. A response whose request began in an earlier generation is not cached. */
  get generation(): number {
    return this.#generation;
  }

  invalidate(changes: readonly Change[]): void {
    this.#generation += 1;
    for (const change of changes) {
      if (typeof change === 'object') this.#licenses.delete(change.licenseKey);
      else this.#entries.clear();
    }
  }

  /** The cached response, if it is valid at this instant (`Clock.now`, which may go back). */
  get(key: string, now: number): CachedResponse | null {
    const entry = this.#entries.get(key);
    if (entry?.license.isValid !== true) return null;
    const { since, until } = entry.response.cacheable;
    return since <= now && now <= until ? entry.response : null;
  }

  /**
   * Caches a response from the second request on: a client that verifies many keys once each must not evict the
   * responses that other clients repeat.
   */
  set(key: string, target: string, response: CachedResponse, generation: number): void {
    if (generation !== this.#generation || target.length > maxTargetLength || !this.#seen.again(key)) return;
    const { licenseKey } = response.cacheable;
    const license = this.#licenses.get(licenseKey) ?? { isValid: true };
    this.#licenses.set(licenseKey, license);
    this.#entries.set(key, { response, license });
  }
}

/** Hashes of the keys of recent requests. All are dropped when there are as many as cached responses. */
class RecentlySeen {
  readonly #hashes = new Set<number>();

  /** Whether the key was seen before (rarely: another key with the same hash). */
  again(key: string): boolean {
    const hash = hashOf(key);
    if (this.#hashes.has(hash)) return true;
    if (this.#hashes.size === maxResponses) this.#hashes.clear();
    this.#hashes.add(hash);
    return false;
  }
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash;
}
