import type { Clock } from '../service/ports.ts';

/** Who asks to go up: a waiting caller, an operation, or a refresh behind an answer. */
export type Priority = 'caller' | 'push' | 'refresh';

const byUrgency: readonly Priority[] = ['caller', 'push', 'refresh'];
/** Of eight turns one is for refreshes and two are for pushes, if any wait, so that none starves. */
const reserved: readonly (Priority | null)[] = [null, null, 'push', null, null, 'push', null, 'refresh'];
const burstSeconds = 2;

type Waiter = { go: () => void };

/**
 * Shares out `sync.rate` requests a second (burst: two seconds' worth): callers first, then pushes,
 * then refreshes, each with a reserve.
 */
export class Rate {
  readonly #clock: Clock;
  readonly #perSecond: () => number;
  readonly #waiting: Record<Priority, Waiter[]> = { caller: [], push: [], refresh: [] };
  #tokens: number;
  #countedAt: number;
  #turn = 0;
  #isTimed = false;
  readonly #lifetime: AbortSignal;

  constructor(clock: Clock, perSecond: () => number, lifetime: AbortSignal) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#lifetime = lifetime;
    this.#tokens = this.#burst();
    this.#countedAt = clock.steady();
  }

  /** Resolves when it is this priority's turn; rejects with the signal's reason. */
  async turn(priority: Priority, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { go: resolve };
    const give = (): void => {
      this.#waiting[priority] = this.#waiting[priority].filter((other) => other !== waiter);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', give, { once: true });
    this.#waiting[priority].push(waiter);
    this.#letGo();
    await promise.finally(() => signal.removeEventListener('abort', give));
  }

  /** Gives back a turn that was not used. */
  giveBack(): void {
    this.#tokens = Math.min(this.#tokens + 1, this.#burst());
    this.#letGo();
  }

  #burst(): number {
    return Math.max(1, this.#perSecond() * burstSeconds);
  }

  #letGo(): void {
    const now = this.#clock.steady();
    const gained = ((now - this.#countedAt) / 1000) * this.#perSecond();
    this.#tokens = Math.min(this.#burst(), this.#tokens + gained);
    this.#countedAt = now;
    for (let next = this.#next(); next !== null; next = this.#next()) next.go();
    if (this.#anyWaiting() && !this.#isTimed) void this.#later();
  }

  #next(): Waiter | null {
    if (this.#tokens < 1) return null;
    const first = reserved[this.#turn % reserved.length] ?? null;
    const order = first === null ? byUrgency : [first, ...byUrgency];
    const priority = order.find((name) => this.#waiting[name].length > 0);
    const waiter = priority === undefined ? undefined : this.#waiting[priority].shift();
    if (waiter === undefined) return null;
    this.#turn += 1;
    this.#tokens -= 1;
    return waiter;
  }

  #anyWaiting(): boolean {
    return byUrgency.some((priority) => this.#waiting[priority].length > 0);
  }

  async #later(): Promise<void> {
    this.#isTimed = true;
    const missing = Math.max(0, 1 - this.#tokens);
    const waitMs = Math.max(1, Math.ceil((missing / this.#perSecond()) * 1000));
    try {
      await this.#clock.sleep(waitMs, this.#lifetime);
    } catch {
      // The process is ending: those who wait are told by their own signals.
      return;
    }
    this.#isTimed = false;
    this.#letGo();
  }
}
