import { LRUCache } from 'lru-cache';
import { TokenBucket, type Rate } from '../domain/token-bucket.ts';
import type { Caller, Clock } from '../service/ports.ts';
import { raceWithAbort } from './waiting.ts';

/** How many seconds' worth of lookups a credential can use at once. */
const burstSeconds = 10;
/** Shorter than the usual 60 s proxy timeout: existing software treats a proxy's error page as a refusal. */
const maxWaitMs = 30_000;
const intervalMs = 100;
/** The size of a cache in characters: about 10,000 license keys of usual length. */
const cacheSize = 2_000_000;

/** A bounded cache; the type of the library is no part of the public declarations. */
type KeyCache<Value> = Pick<Map<string, Value>, 'get' | 'delete' | 'clear'> & {
  set(name: string, value: Value): unknown;
};

/** A cache by names that contain license keys. `max` would allocate memory for all entries at once. */
export function keyCache<Value extends object | number | boolean>(): KeyCache<Value> {
  return new LRUCache<string, Value>({
    maxSize: cacheSize,
    sizeCalculation: (_, name) => 100 + name.length,
  });
}

/** The current configuration. */
export type LookupLimits = {
  /** Lookups a second for each credential (`limits.misses`). */
  perSecond: number;
  /** How many callers may wait at once. */
  maxWaiting: number;
};

/** An unknown license key, who asks for it, and how many products will be asked. */
type Lookup = Caller & { licenseKey: string; requests: number };

/** `retryAfterMs`: the queue is full, or the caller has waited too long. */
type LookupAdmission = { admitted: true } | { admitted: false; retryAfterMs: number };

type Waiter = Lookup & {
  name: string;
  enteredAt: number;
  /** When the key was first requested. */
  requestedAt: number;
  /** The key was requested before, and its caller was refused or left. */
  isRepeated: boolean;
  resolve: (admission: LookupAdmission) => void;
};

/**
 * Limits how many unknown license keys a credential can look up at the upstream: guessing must not use up the
 * upstream's rate. Lookups beyond the limit wait.
 *
 * All installations of a program share one credential, so one guesser and all new customers wait in the same queue. The
 * connection with the fewest lookups in vain goes first, so that a guesser, who sends the next key after each answer,
 * does not go before a customer. Among equal connections the newest key goes first: otherwise each customer would wait
 * for all keys of the guesser. A guesser with many new connections could still keep out a customer for ever. So every
 * other lookup is one of a key that is requested again, in the order of their first requests.
 *
 * A lookup is charged for all its requests before the first is sent: otherwise all waiting lookups would be admitted at
 * once. The caller gives back what was not used, and everything if the key exists.
 */
export class LookupQueue {
  readonly #clock: Clock;
  readonly #limits: () => LookupLimits;
  readonly #lifetime: AbortSignal;
  readonly #buckets = keyCache<TokenBucket>();
  /** When each key whose caller was refused or left was first requested. */
  readonly #abandoned = keyCache<number>();
  /** The requests of each connection, without those that were given back. */
  readonly #charged = keyCache<number>();
  /** Whether the next lookup of a credential is one of a repeated key, if there is one. */
  readonly #isTurnOfRepeated = keyCache<boolean>();
  /** In the order of arrival. */
  #waiting: Waiter[] = [];
  #isRunning = false;

  constructor(clock: Clock, limits: () => LookupLimits, lifetime: AbortSignal) {
    this.#clock = clock;
    this.#limits = limits;
    this.#lifetime = lifetime;
  }

  /** Rejects with the signal's reason if the signal aborts. Waiting callers of the same key are admitted together. */
  async enter(lookup: Lookup, signal: AbortSignal): Promise<LookupAdmission> {
    signal.throwIfAborted();
    if (this.#lifetime.aborted) return { admitted: false, retryAfterMs: 0 };
    const name = `${lookup.credential}\n${lookup.licenseKey}`;
    const enteredAt = this.#clock.monotonic();
    const requestedBefore = this.#abandoned.get(name);
    const { promise, resolve } = Promise.withResolvers<LookupAdmission>();
    const waiter: Waiter = {
      ...lookup,
      name,
      enteredAt,
      requestedAt: requestedBefore ?? enteredAt,
      isRepeated: requestedBefore !== undefined,
      resolve,
    };
    this.#waiting.push(waiter);
    const admission = raceWithAbort(promise, signal, () => this.#remove(waiter));
    this.#advance();
    if (this.#waiting.length > this.#limits().maxWaiting) this.#makeRoom();
    if (!this.#isRunning) void this.#run();
    return await admission;
  }

  /** Gives back requests that were charged and not used. */
  giveBack({ credential, connection }: Caller, requests: number): void {
    this.#charge(connection, -requests);
    this.#bucket(credential).giveBack(this.#rate(), this.#clock.monotonic(), requests);
    this.#advance();
  }

  /** Admits lookups as far as the rate allows, and refuses callers that have waited too long. */
  #advance(): void {
    for (const credential of new Set(this.#waiting.map((waiter) => waiter.credential))) {
      while (this.#waitOf(credential) === 0) {
        const next = this.#next(credential);
        if (next === undefined) break;
        this.#admit(next);
      }
    }
    const latest = this.#clock.monotonic() - maxWaitMs;
    for (const waiter of this.#waiting.filter(({ enteredAt }) => enteredAt <= latest)) this.#refuse(waiter);
  }

  #next(credential: string): Waiter | undefined {
    const { repeated, first } = this.#ofCredential(credential);
    return (
      (this.#isTurnOfRepeated.get(credential) === true ? repeated[0] : first[0]) ?? repeated[0] ?? first[0]
    );
  }

  /** In the order of their turns. */
  #ofCredential(credential: string): Record<'repeated' | 'first', Waiter[]> {
    const waiting = this.#waiting.filter((waiter) => waiter.credential === credential);
    const repeated = waiting.filter(({ isRepeated }) => isRepeated);
    return {
      repeated: repeated.toSorted((one, other) => one.requestedAt - other.requestedAt),
      first: waiting
        .filter(({ isRepeated }) => !isRepeated)
        .toReversed()
        .toSorted((one, other) => this.#chargeOf(one.connection) - this.#chargeOf(other.connection)),
    };
  }

  #chargeOf(connection: string): number {
    return this.#charged.get(connection) ?? 0;
  }

  #charge(connection: string, requests: number): void {
    this.#charged.set(connection, Math.max(0, this.#chargeOf(connection) + requests));
  }

  #admit({ credential, connection, name, requests, isRepeated }: Waiter): void {
    this.#charge(connection, requests);
    this.#isTurnOfRepeated.set(credential, !isRepeated);
    this.#bucket(credential).take(this.#rate(), this.#clock.monotonic(), requests);
    for (const waiter of this.#waiting.filter((each) => each.name === name)) {
      this.#remove(waiter);
      waiter.resolve({ admitted: true });
    }
    this.#abandoned.delete(name);
  }

  #refuse(waiter: Waiter): void {
    this.#remove(waiter);
    waiter.resolve({ admitted: false, retryAfterMs: this.#waitOf(waiter.credential) });
  }

  #remove(waiter: Waiter): void {
    this.#waiting = this.#waiting.filter((other) => other !== waiter);
    this.#abandoned.set(waiter.name, waiter.requestedAt);
  }

  /** Refuses the caller whose turn comes last, of the credential with the most callers. */
  #makeRoom(): void {
    const byCredential = Map.groupBy(this.#waiting, ({ credential }) => credential);
    const [[credential] = ['']] = [...byCredential].toSorted(
      ([, one], [, other]) => other.length - one.length,
    );
    const { repeated, first } = this.#ofCredential(credential);
    const last = first.at(-1) ?? repeated.at(-1);
    if (last !== undefined) this.#refuse(last);
  }

  /** Advances the queue while anyone waits. When the process ends, refuses all. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0 && !this.#lifetime.aborted) {
      await this.#clock.sleep(intervalMs, this.#lifetime).catch(() => undefined);
      this.#advance();
    }
    this.#isRunning = false;
    for (const waiter of this.#waiting) this.#refuse(waiter);
  }

  #rate(): Rate {
    const { perSecond } = this.#limits();
    return { perSecond, burst: Math.max(1, perSecond * burstSeconds) };
  }

  #bucket(credential: string): TokenBucket {
    const bucket = this.#buckets.get(credential) ?? new TokenBucket();
    this.#buckets.set(credential, bucket);
    return bucket;
  }

  #waitOf(credential: string): number {
    return this.#bucket(credential).waitMs(this.#rate(), this.#clock.monotonic());
  }
}
