import { LRUCache } from 'lru-cache';
import type {
  CredentialCache,
  Credentials,
  ResolvedCredential,
  SentCredential,
} from '../../service/access/credential.ts';
import { cacheKeyOf } from '../../service/access/credential.ts';
import type { ChangeFeed } from '../../service/change-feed.ts';

/** With `max`, lru-cache would allocate room for all entries at once. */
const limit = { maxSize: 10_000, sizeCalculation: () => 1 };

/** Caches accepted credentials until a commit changes any credential. Wrong ones are not cached: attackers send many. */
export class AnnouncedCredentialCache implements CredentialCache {
  readonly #changes: ChangeFeed;

  constructor(changes: ChangeFeed) {
    this.#changes = changes;
  }

  cached(credentials: Credentials): Credentials {
    const resolvedCredentials = new LRUCache<string, ResolvedCredential>(limit);
    let generation = 0;
    this.#changes.subscribe((changes) => {
      if (changes.every((change) => typeof change === 'object')) return;
      generation += 1;
      resolvedCredentials.clear();
    });
    const read = async (sent: SentCredential): Promise<ResolvedCredential | null> => {
      const readIn = generation;
      const resolvedCredential = await credentials.find(sent);
      if (resolvedCredential !== null && readIn === generation)
        resolvedCredentials.set(cacheKeyOf(sent), resolvedCredential);
      return resolvedCredential;
    };
    return {
      find: (sent) => resolvedCredentials.get(cacheKeyOf(sent)) ?? read(sent),
      use: (resolvedCredential) => credentials.use(resolvedCredential),
    };
  }
}
