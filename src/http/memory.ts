import { LRUCache } from 'lru-cache';
import {
  nameOfCredential,
  type Credentials,
  type Grant,
  type KnownGrants,
  type SentCredential,
} from '../service/access/credential.ts';
import type { Change } from '../service/tables.ts';
import type { RepeatedLicense } from './answer.ts';

/** How many credentials, and how many answers, are remembered: those that were used last. */
const most = 10_000;
/** By `max` there would be room for all of them from the start. */
const limit = { maxSize: most, sizeCalculation: () => 1 };

/** In characters. A question is a license key and little else; what a caller adds to it shall fill no memory. */
const longestQuestion = 1_000;

/** An answer about a license key as it was sent: 200, its headers as names and values in turn, and its body. */
export type ReadyAnswer = { headers: readonly string[]; body: string; repeat: RepeatedLicense };

/** Stands for a license as long as no commit has changed it. */
type Unchanged = { holds: boolean };

/**
 * What need not be read or made again: whom credentials stand for, and answers about license keys. Every commit
 * tells here what it changed before its own answer leaves (`forget`), so that none is older than any answer of
 * a write (src/http/README.md, Response cache).
 */
export class Memory implements KnownGrants {
  readonly #grants = new LRUCache<string, Grant>(limit);
  readonly #answers = new LRUCache<string, { ready: ReadyAnswer; license: Unchanged }>(limit);
  /** By the license's own spelling: answers to other spellings refer to the same. */
  readonly #licenses = new LRUCache<string, Unchanged>({
    ...limit,
    dispose: (license) => {
      license.holds = false;
    },
  });
  readonly #asked = new AskedLately();
  #moment = 0;

  /** Grows when something is forgotten: what was read before that is not to be remembered. */
  get moment(): number {
    return this.#moment;
  }

  /** Forgets what a commit has changed. */
  forget(changes: readonly Change[]): void {
    this.#moment += 1;
    for (const change of changes) {
      if (typeof change === 'object') {
        this.#licenses.delete(change.licenseKey);
        continue;
      }
      this.#grants.clear();
      if (change === 'anything') this.#licenses.clear();
    }
  }

  grantOf(sent: SentCredential): Grant | null {
    return this.#grants.get(nameOfCredential(sent)) ?? null;
  }

  remembering(credentials: Credentials): Credentials {
    const findNow = async (sent: SentCredential): Promise<Grant | null> => {
      const moment = this.#moment;
      const grant = await credentials.find(sent);
      // Whoever guesses fills no memory.
      if (grant !== null && moment === this.#moment) this.#grants.set(nameOfCredential(sent), grant);
      return grant;
    };
    return {
      find: (sent) => this.grantOf(sent) ?? findNow(sent),
      use: (grant) => credentials.use(grant),
    };
  }

  /** The answer to a question at an instant (`Clock.now`), if it can be repeated. */
  answerTo(question: string, now: number): ReadyAnswer | null {
    const known = this.#answers.get(question);
    if (known?.license.holds !== true) return null;
    const { since, until } = known.ready.repeat;
    return since <= now && now <= until ? known.ready : null;
  }

  /**
   * Remembers an answer that was read after a moment; nothing may have been forgotten since. That of a question that
   * is new is not worth its memory yet: whoever asks for many keys, each once, would drive out what others repeat.
   */
  keep(question: string, ready: ReadyAnswer, moment: number): void {
    if (moment !== this.#moment || question.length > longestQuestion || !this.#asked.again(question)) return;
    const { licenseKey } = ready.repeat;
    const license = this.#licenses.get(licenseKey) ?? { holds: true };
    this.#licenses.set(licenseKey, license);
    this.#answers.set(question, { ready, license });
  }
}

/** Which questions were asked lately, by their hashes alone: they are forgotten when there are as many as answers. */
class AskedLately {
  readonly #hashes = new Set<number>();

  /** Whether a question was asked before (seldom: another with the same hash). */
  again(question: string): boolean {
    const hash = hashOf(question);
    if (this.#hashes.has(hash)) return true;
    if (this.#hashes.size === most) this.#hashes.clear();
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
