import type { Clock } from '../service/ports.ts';
import { unlessAborted } from './waiting.ts';

/** Why a request is sent: a waiting caller, an operation, or a refresh in the background. */
export type Priority = 'caller' | 'push' | 'refresh';

const byUrgency: readonly Priority[] = ['caller', 'push', 'refresh'];
/** Of eight turns, one is for refreshes and two are for pushes if any wait, so that none starves. */
const reserved: readonly (Priority | null)[] = [null, null, 'push', null, null, 'push', null, 'refresh'];
const burstSeconds = 2;

type Waiter = { go: () => void };
/** The waiters by requester. The first requester is next. */
type Queue = Map<string, Waiter[]>;

/**
 * Shares `sync.rate` requests a second (burst: two seconds' worth): callers first, then pushes, then refreshes, each
 * with a reserve. Within a priority, the requesters take turns.
 *
 * For example: one program looks up a thousand keys after a restart, while a till waits for one key. First come, first
 * served, the till would wait for all thousand; with turns, it waits for one of them.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #perSecond: () => number;
  readonly #waiting: Record<Priority, Queue> = { caller: new Map(), push: new Map(), refresh: new Map() };
  #tokens: number;
  #countedAt: number;
  #granted = 0;
  #isTimed = false;
  readonly #lifetime: AbortSignal;

  constructor(clock: Clock, perSecond: () => number, lifetime: AbortSignal) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#lifetime = lifetime;
    this.#tokens = this.#burst();
    this.#countedAt = clock.monotonic();
  }

  /** Resolves when it is the turn of this priority and requester; rejects with the signal's reason. */
  async acquire(priority: Priority, signal: AbortSignal, requester: string = ''): Promise<void> {
    signal.throwIfAborted();
    if (this.#tryAcquire()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { go: resolve };
    const queue = this.#waiting[priority];
    queue.set(requester, [...(queue.get(requester) ?? []), waiter]);
    const acquired = unlessAborted(promise, signal, () => {
      const others = (queue.get(requester) ?? []).filter((other) => other !== waiter);
      if (others.length > 0) queue.set(requester, others);
      else queue.delete(requester);
    });
    this.#grantTurns();
    await acquired;
  }

  /** Takes a turn if no one waits and a token is left. */
  #tryAcquire(): boolean {
    if (this.#anyWaiting()) return false;
    this.#gain();
    if (this.#tokens < 1) return false;
    this.#granted += 1;
    this.#tokens -= 1;
    return true;
  }

  /** Gives back a turn that was not used. */
  giveBack(): void {
    this.#tokens += 1;
    this.#grantTurns();
  }

  #burst(): number {
    return Math.max(1, this.#perSecond() * burstSeconds);
  }

  #gain(): void {
    const now = this.#clock.monotonic();
    const gained = ((now - this.#countedAt) / 1000) * this.#perSecond();
    this.#tokens = Math.min(this.#burst(), this.#tokens + gained);
    this.#countedAt = now;
  }

  #grantTurns(): void {
    this.#gain();
    for (let next = this.#next(); next !== null; next = this.#next()) next.go();
    if (this.#anyWaiting() && !this.#isTimed) void this.#later();
  }

  #next(): Waiter | null {
    if (this.#tokens < 1) return null;
    const first = reserved[this.#granted % reserved.length] ?? null;
    const order = first === null ? byUrgency : [first, ...byUrgency];
    const priority = order.find((name) => this.#waiting[name].size > 0);
    const waiter = priority === undefined ? null : takeFirst(this.#waiting[priority]);
    if (waiter === null) return null;
    this.#granted += 1;
    this.#tokens -= 1;
    return waiter;
  }

  #anyWaiting(): boolean {
    return byUrgency.some((priority) => this.#waiting[priority].size > 0);
  }

  async #later(): Promise<void> {
    this.#isTimed = true;
    const missing = Math.max(0, 1 - this.#tokens);
    const waitMs = Math.max(1, Math.ceil((missing / this.#perSecond()) * 1000));
    try {
      await this.#clock.sleep(waitMs, this.#lifetime);
    } catch {
      // The process is ending: the waiters' own signals reject.
      return;
    }
    this.#isTimed = false;
    this.#grantTurns();
  }
}

/** Takes the first waiter of the next requester. The requester is then last. */
function takeFirst(queue: Queue): Waiter | null {
  for (const [requester, [first, ...rest]] of queue) {
    queue.delete(requester);
    if (rest.length > 0) queue.set(requester, rest);
    if (first !== undefined) return first;
  }
  return null;
}
