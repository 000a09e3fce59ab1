import { TokenBucket, type Rate } from '../domain/token-bucket.ts';
import type { Clock } from '../service/ports.ts';
import { raceWithAbort } from './waiting.ts';

/** Why a request is sent: a waiting caller, an operation, or a refresh in the background. */
export type Priority = 'caller' | 'delivery' | 'refresh';

const byUrgency: readonly Priority[] = ['caller', 'delivery', 'refresh'];
/** Of eight requests, one is reserved for refreshes and two for deliveries if any wait, so that none starves. */
const reserved: readonly (Priority | null)[] = [
  null,
  null,
  'delivery',
  null,
  null,
  'delivery',
  null,
  'refresh',
];
const burstSeconds = 2;

/** The waiters by requester. The first requester is next. */
type Queue = Map<string, (() => void)[]>;

/**
 * Shares `sync.rate` requests a second (burst: two seconds' worth): callers first, then deliveries, then refreshes, each
 * with a reserve. Within a priority, the requesters take turns.
 *
 * For example: one program looks up a thousand keys after a restart, while a till waits for one key. First come, first
 * served, the till would wait for all thousand; with turns, it waits for one of them.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #perSecond: () => number;
  readonly #lifetime: AbortSignal;
  readonly #bucket = new TokenBucket();
  readonly #waiting: Record<Priority, Queue> = { caller: new Map(), delivery: new Map(), refresh: new Map() };
  #granted = 0;
  #isTimed = false;

  constructor(clock: Clock, perSecond: () => number, lifetime: AbortSignal) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#lifetime = lifetime;
  }

  /** Resolves when it is the turn of this priority and requester; rejects with the signal's reason. */
  async acquire(priority: Priority, signal: AbortSignal, requester: string = ''): Promise<void> {
    signal.throwIfAborted();
    if (!this.#anyWaiting() && this.#spend()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting[priority];
    queue.set(requester, [...(queue.get(requester) ?? []), resolve]);
    const acquired = raceWithAbort(promise, signal, () => {
      const others = (queue.get(requester) ?? []).filter((other) => other !== resolve);
      if (others.length > 0) queue.set(requester, others);
      else queue.delete(requester);
    });
    this.#grant();
    await acquired;
  }

  /** Gives back what was acquired and not used. */
  giveBack(): void {
    this.#bucket.giveBack(this.#rate(), this.#clock.monotonic(), 1);
    this.#grant();
  }

  #rate(): Rate {
    const perSecond = this.#perSecond();
    return { perSecond, burst: Math.max(1, perSecond * burstSeconds) };
  }

  /** Takes a token if one is left. */
  #spend(): boolean {
    if (this.#bucket.take(this.#rate(), this.#clock.monotonic()) > 0) return false;
    this.#granted += 1;
    return true;
  }

  #grant(): void {
    while (this.#anyWaiting()) {
      const first = reserved[this.#granted % reserved.length] ?? null;
      if (!this.#spend()) break;
      const order = first === null ? byUrgency : [first, ...byUrgency];
      const priority = order.find((name) => this.#waiting[name].size > 0);
      if (priority !== undefined) takeFirst(this.#waiting[priority])?.();
    }
    if (this.#anyWaiting() && !this.#isTimed) void this.#grantLater();
  }

  #anyWaiting(): boolean {
    return byUrgency.some((priority) => this.#waiting[priority].size > 0);
  }

  async #grantLater(): Promise<void> {
    this.#isTimed = true;
    try {
      const waitMs = this.#bucket.waitMs(this.#rate(), this.#clock.monotonic());
      await this.#clock.sleep(Math.max(1, waitMs), this.#lifetime);
    } catch {
      // The process is ending: the waiters' own signals reject.
      return;
    }
    this.#isTimed = false;
    this.#grant();
  }
}

/** Takes the first waiter of the next requester. The requester is then last. */
function takeFirst(queue: Queue): (() => void) | undefined {
  for (const [requester, [first, ...rest]] of queue) {
    queue.delete(requester);
    if (rest.length > 0) queue.set(requester, rest);
    return first;
  }
  return undefined;
}
