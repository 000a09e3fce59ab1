import { LRUCache } from 'lru-cache';
import { bucketAt, giveBack, spend, waitOf, type Bucket, type Rate } from '../domain/token-bucket.ts';
import type { Clock } from '../service/ports.ts';
import { unlessAborted } from './waiting.ts';

/** How many seconds' worth of lookups a credential can use at once. */
const burstSeconds = 10;
/** Shorter than the usual 60 s proxy timeout: existing software treats a proxy's error page as a refusal. */
const longestWaitMs = 30_000;
/** How long an abandoned key is cached, in ms. A key is abandoned when its callers gave up or were refused. */
const rememberedMs = 600_000;
/** How many credentials, and abandoned keys, are cached. `max` would allocate memory for all of them at once. */
const remembered = { maxSize: 10_000, sizeCalculation: () => 1 };

/** What is configured now. */
export type LookupLimits = {
  /** Lookups a second for each credential (`limits.misses`). */
  perSecond: number;
  /** How many callers may wait at once. */
  maxWaiting: number;
};

/** An unknown license key, and the credential that asks for it. */
type Lookup = {
  credential: string;
  licenseKey: string;
  /** How many products will be asked for the key. */
  requests: number;
};

/** The permission to look up a key. Disposing it returns unused turns. */
export interface LookupTurn extends Disposable {
  /** Charges a request that is about to be sent. */
  spend(): void;
  /** The request was not sent: gives its charge back. */
  unsent(): void;
  /** The upstream knows the key: gives all charges back. */
  found(): void;
}

/** The queue is full, or the caller has waited too long. */
type LookupRefusal = { refused: true; retryAfterMs: number };

type Caller = { enteredAt: number; answer: (turn: LookupTurn | LookupRefusal) => void };

/** A license key that callers of one credential ask for. */
type QueuedKey = Lookup & {
  firstAskedAt: number;
  /** The key was abandoned before. */
  isAskedAgain: boolean;
  waiting: Set<Caller>;
  /** How many callers are looking up the key. */
  active: number;
  /** Requests that were charged in advance and are not sent yet. */
  unspent: number;
  spent: number;
};

type CredentialQueue = {
  credential: string;
  keys: Map<string, QueuedKey>;
  isTurnOfAskedAgain: boolean;
  /** The sleep until the next turn. */
  sleep: { until: number; ending: AbortController } | null;
};

/**
 * Limits how many unknown license keys a credential can look up at the upstream: guessing must not use up the
 * upstream's rate. A lookup of an existing key costs nothing in the end. Lookups beyond the limit wait.
 *
 * All installations of a program share one credential, so one guesser and all new customers wait in the same queue.
 * All callers of one key share its place. The newest key goes first: otherwise each new customer would wait for all keys
 * of the guesser. But then a guesser who always sends new keys could keep out a customer for ever. So turns alternate:
 * every other turn goes to an abandoned key that callers ask for again, in the order in which these keys were first
 * asked for.
 *
 * A turn charges all requests of its key in advance, and gives unused charges back. The requests are sent later: if they
 * were charged only then, all waiting keys would get their turn at once.
 */
export class LookupQueue {
  readonly #clock: Clock;
  readonly #limits: () => LookupLimits;
  readonly #lifetime: AbortSignal;
  readonly #buckets = new LRUCache<string, Bucket>(remembered);
  /** When each abandoned key was first asked for. */
  readonly #askedBefore = new LRUCache<string, number>(remembered);
  readonly #queues = new Map<string, CredentialQueue>();
  #waiting = 0;

  constructor(clock: Clock, limits: () => LookupLimits, lifetime: AbortSignal) {
    this.#clock = clock;
    this.#limits = limits;
    this.#lifetime = lifetime;
    lifetime.addEventListener('abort', () => this.#refuseAll(), { once: true });
  }

  /** Resolves with the turn of a key or with a refusal; rejects with the signal's reason if the signal aborts. */
  async enter(lookup: Lookup, signal: AbortSignal): Promise<LookupTurn | LookupRefusal> {
    signal.throwIfAborted();
    if (this.#lifetime.aborted) return { refused: true, retryAfterMs: 0 };
    const queue = this.#queueOf(lookup.credential);
    const key = queue.keys.get(lookup.licenseKey) ?? this.#add(queue, lookup);
    // The key is being looked up: another caller of the same key costs nothing.
    if (key.active > 0) return this.#begin(queue, key);
    const { promise, resolve } = Promise.withResolvers<LookupTurn | LookupRefusal>();
    const caller: Caller = { enteredAt: this.#clock.elapsed(), answer: resolve };
    key.waiting.add(caller);
    this.#waiting += 1;
    const turn = unlessAborted(promise, signal, () => {
      if (this.#remove(queue, key, caller)) this.#sleep(queue);
    });
    this.#advance(queue);
    if (this.#waiting > this.#limits().maxWaiting) this.#refuseOne();
    return await turn;
  }

  #queueOf(credential: string): CredentialQueue {
    const empty = { credential, keys: new Map(), isTurnOfAskedAgain: false, sleep: null };
    const queue = this.#queues.get(credential) ?? empty;
    this.#queues.set(credential, queue);
    return queue;
  }

  #add(queue: CredentialQueue, lookup: Lookup): QueuedKey {
    const now = this.#clock.elapsed();
    const before = this.#askedBefore.get(nameOf(lookup));
    const isAskedAgain = before !== undefined && now - before < rememberedMs;
    const firstAskedAt = isAskedAgain ? before : now;
    const counts = { active: 0, unspent: 0, spent: 0 };
    const key: QueuedKey = { ...lookup, ...counts, firstAskedAt, isAskedAgain, waiting: new Set() };
    queue.keys.set(lookup.licenseKey, key);
    return key;
  }

  /**
   * Gives turns as far as the rate allows, refuses callers that have waited too long, and sleeps until the next turn or
   * refusal.
   */
  #advance(queue: CredentialQueue): void {
    while (this.#waitOf(queue.credential) === 0) {
      const key = nextOf(queue);
      if (key === null) break;
      this.#change(key.credential, (bucket) => spend(bucket, key.requests));
      key.unspent = key.requests;
      this.#askedBefore.delete(nameOf(key));
      for (const caller of key.waiting) {
        key.waiting.delete(caller);
        this.#waiting -= 1;
        caller.answer(this.#begin(queue, key));
      }
    }
    this.#refuseLate(queue);
    this.#sleep(queue);
  }

  #begin(queue: CredentialQueue, key: QueuedKey): LookupTurn {
    key.active += 1;
    return {
      spend: () => {
        if (key.unspent > 0) key.unspent -= 1;
        else this.#change(key.credential, (bucket) => spend(bucket, 1));
        key.spent += 1;
      },
      unsent: () => {
        if (key.spent === 0) return;
        key.spent -= 1;
        this.#giveBack(key.credential, 1);
      },
      found: () => {
        const { spent } = key;
        key.spent = 0;
        this.#giveBack(key.credential, spent);
      },
      [Symbol.dispose]: () => {
        key.active -= 1;
        if (key.active > 0) return;
        queue.keys.delete(key.licenseKey);
        this.#giveBack(key.credential, key.unspent);
      },
    };
  }

  #giveBack(credential: string, count: number): void {
    if (count > 0) this.#change(credential, (bucket) => giveBack(bucket, this.#rate(), count));
    const queue = this.#queues.get(credential);
    if (queue !== undefined) this.#advance(queue);
  }

  /** Whether the caller was still waiting. */
  #remove(queue: CredentialQueue, key: QueuedKey, caller: Caller): boolean {
    if (!key.waiting.delete(caller)) return false;
    this.#waiting -= 1;
    if (key.waiting.size === 0) {
      queue.keys.delete(key.licenseKey);
      this.#askedBefore.set(nameOf(key), key.firstAskedAt);
    }
    return true;
  }

  #refuse(queue: CredentialQueue, key: QueuedKey, caller: Caller): void {
    const retryAfterMs = this.#waitOf(queue.credential);
    if (this.#remove(queue, key, caller)) caller.answer({ refused: true, retryAfterMs });
  }

  #refuseLate(queue: CredentialQueue): void {
    const latest = this.#clock.elapsed() - longestWaitMs;
    for (const key of queue.keys.values()) {
      for (const caller of key.waiting) if (caller.enteredAt <= latest) this.#refuse(queue, key, caller);
    }
  }

  /**
   * Makes room: refuses one caller of the credential with the most callers, and there of the key with the most callers.
   * If each key has one caller, refuses the caller of the key whose turn would come last.
   */
  #refuseOne(): void {
    let longest: { queue: CredentialQueue; callers: number } | null = null;
    for (const queue of this.#queues.values()) {
      const callers = [...queue.keys.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
      if (longest === null || callers > longest.callers) longest = { queue, callers };
    }
    if (longest === null) return;
    const { askedAgain, first } = waitingOf(longest.queue);
    const key = [...askedAgain, ...first].reduce<QueuedKey | undefined>(
      (most, each) => (most === undefined || each.waiting.size >= most.waiting.size ? each : most),
      undefined,
    );
    const caller = key && [...key.waiting].at(-1);
    if (key === undefined || caller === undefined) return;
    this.#refuse(longest.queue, key, caller);
    this.#sleep(longest.queue);
  }

  /** Sleeps until the next turn or the next refusal; if no caller waits, until one comes. */
  #sleep(queue: CredentialQueue): void {
    let enteredAt = Infinity;
    for (const { waiting } of queue.keys.values()) {
      for (const caller of waiting) enteredAt = Math.min(enteredAt, caller.enteredAt);
    }
    if (queue.keys.size === 0) this.#queues.delete(queue.credential);
    const nextTurnAt = this.#clock.elapsed() + this.#waitOf(queue.credential);
    const until = enteredAt === Infinity ? Infinity : Math.min(nextTurnAt, enteredAt + longestWaitMs);
    if (queue.sleep !== null && queue.sleep.until <= until && until !== Infinity) return;
    queue.sleep?.ending.abort();
    queue.sleep = null;
    if (until === Infinity) return;
    const sleep = { until, ending: new AbortController() };
    queue.sleep = sleep;
    const advance = (): void => {
      queue.sleep = null;
      this.#advance(queue);
    };
    const ms = Math.max(1, until - this.#clock.elapsed());
    this.#clock.sleep(ms, sleep.ending.signal).then(advance, () => undefined);
  }

  /** Refuses all callers because the process ends. */
  #refuseAll(): void {
    for (const queue of this.#queues.values()) {
      for (const key of queue.keys.values()) {
        for (const caller of key.waiting) this.#refuse(queue, key, caller);
      }
      this.#sleep(queue);
    }
  }

  #rate(): Rate {
    const { perSecond } = this.#limits();
    return { perSecond, burst: Math.max(1, perSecond * burstSeconds) };
  }

  #bucket(credential: string): Bucket {
    return bucketAt(this.#buckets.get(credential), this.#rate(), this.#clock.elapsed());
  }

  #change(credential: string, change: (bucket: Bucket) => Bucket): void {
    this.#buckets.set(credential, change(this.#bucket(credential)));
  }

  #waitOf(credential: string): number {
    return waitOf(this.#bucket(credential), this.#rate());
  }
}

function nameOf({ credential, licenseKey }: Lookup): string {
  return `${credential}\n${licenseKey}`;
}

function nextOf(queue: CredentialQueue): QueuedKey | null {
  const { askedAgain, first } = waitingOf(queue);
  const key = (queue.isTurnOfAskedAgain ? askedAgain[0] : first[0]) ?? askedAgain[0] ?? first[0] ?? null;
  if (key !== null) queue.isTurnOfAskedAgain = !key.isAskedAgain;
  return key;
}

/** The waiting keys: the keys that are asked for again, first asked first; and the other keys, newest first. */
function waitingOf({ keys }: CredentialQueue): Record<'askedAgain' | 'first', QueuedKey[]> {
  const waiting = [...keys.values()].filter((key) => key.waiting.size > 0);
  return {
    askedAgain: waiting
      .filter(({ isAskedAgain }) => isAskedAgain)
      .toSorted((one, other) => one.firstAskedAt - other.firstAskedAt),
    first: waiting.filter(({ isAskedAgain }) => !isAskedAgain).toReversed(),
  };
}
