import { LRUCache } from 'lru-cache';
import type { CredentialCache, Credentials, Grant, SentCredential } from '../../service/access/credential.ts';
import { cacheKeyOf } from '../../service/access/credential.ts';
import type { ChangeFeed } from '../../service/change-feed.ts';

/** With `max`, lru-cache would allocate room for all entries at once. */
const limit = { maxSize: 10_000, sizeCalculation: () => 1 };

/** Caches accepted credentials until a commit changes any credential. Wrong ones are not cached: an attacker sends many. */
export class AnnouncedCredentialCache implements CredentialCache {
  readonly #changes: ChangeFeed;

  constructor(changes: ChangeFeed) {
    this.#changes = changes;
  }

  cached(credentials: Credentials): Credentials {
    const grants = new LRUCache<string, Grant>(limit);
    let generation = 0;
    this.#changes.subscribe((changes) => {
      if (changes.every((change) => typeof change === 'object')) return;
      generation += 1;
      grants.clear();
    });
    const read = async (sent: SentCredential): Promise<Grant | null> => {
      const readIn = generation;
      const grant = await credentials.find(sent);
      if (grant !== null && readIn === generation) grants.set(cacheKeyOf(sent), grant);
      return grant;
    };
    return {
      find: (sent) => grants.get(cacheKeyOf(sent)) ?? read(sent),
      use: (grant) => credentials.use(grant),
    };
  }
}
