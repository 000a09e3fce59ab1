import { StorageError, type Clock } from '../service/ports.ts';
import type { QueueName } from '../domain/outbox/operation.ts';

/** How long to wait before writing again when the disk is full, in ms. */
const fullDiskWaitMs = 1000;

/**
 * A sleep that can be ended early. A call of `up` while nothing sleeps ends the next sleep at once.
 *
 * For example: the delivery loop finds nothing due and is about to sleep. In between, a caller records a use and wakes the
 * loop. If that call were lost, the use would wait until the loop wakes up by itself, half a minute later.
 */
export class Wake {
  readonly #clock: Clock;
  #isWoken = false;
  /** Ends the sleep; null while nothing sleeps. */
  #end: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  up(): void {
    this.#isWoken = true;
    this.#end?.();
  }

  /** Resolves after `ms` (never, if infinite), when woken, or when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isWoken && !signal.aborted && ms > 0) await this.#sleep(ms, signal);
    this.#isWoken = false;
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort(early);
    this.#end = end;
    signal.addEventListener('abort', end, { once: true });
    // `sleep` rejects only when it is ended early, which is what waking does.
    await this.#clock.sleep(ms, ending.signal).catch(() => undefined);
    signal.removeEventListener('abort', end);
    this.#end = null;
  }
}

/** Created once: creating an error for each wake-up would be most of its cost. */
const early = new Error('woken');

/** The result of the work, or the signal's reason if the signal aborts first; then `leave` is called as well. */
export async function raceWithAbort<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
  leave: () => void = () => undefined,
): Promise<Value> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => {
    leave();
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener('abort', abort, { once: true });
  return await Promise.race([work, aborted.promise]).finally(() =>
    signal.removeEventListener('abort', abort),
  );
}

/**
 * Writes, and tries again while the disk is full: until the upstream's response is written, it exists only here.
 * Rejects on any other storage error, or with the signal's reason.
 */
export async function persist<Value>(
  clock: Clock,
  signal: AbortSignal,
  write: () => Promise<Value>,
): Promise<Value> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      await clock.sleep(fullDiskWaitMs, signal);
    }
  }
}

/** Writes without waiting for room on a full disk, because a response does not need to be stored. */
export async function persistIfRoom(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

export function isDiskFull(error: unknown): error is StorageError {
  return error instanceof StorageError && error.fault === 'full';
}

/** Holds one or more queues of a subject; disposing releases the queues. */
export interface MutexGuard extends Disposable {
  /** Whether another request about the same subject was under way at some time while the queues were held. */
  readonly overlapped: boolean;
}

type Hold = MutexGuard & { queues: readonly QueueName[]; overlapped: boolean };
type Waiter = { queues: readonly QueueName[]; grant: (hold: Hold) => void };
type Subject = { holds: Hold[]; waiters: Waiter[] };

/**
 * A mutex for each queue: a delivery holds its own queue, and a read holds all queues of its key. First come, first served.
 *
 * For example: a caller asks to read a key while a use of the same key is being sent. If both requests were under way
 * at once, the count that is read might or might not contain the use. So the read waits for the response to the use.
 */
export class KeyedMutex {
  readonly #subjects = new Map<string, Subject>();

  /** Resolves when the queues are free; rejects with the signal's reason. */
  async enter(name: string, queues: readonly QueueName[], signal: AbortSignal): Promise<MutexGuard> {
    signal.throwIfAborted();
    const subject = this.#subjects.get(name) ?? { holds: [], waiters: [] };
    this.#subjects.set(name, subject);
    if (subject.waiters.length === 0 && isFree(subject, queues)) return this.#take(name, subject, queues);
    const { promise, resolve } = Promise.withResolvers<Hold>();
    const waiter: Waiter = { queues, grant: resolve };
    subject.waiters.push(waiter);
    return await raceWithAbort(promise, signal, () => {
      subject.waiters = subject.waiters.filter((other) => other !== waiter);
      this.#grantNext(name, subject);
    });
  }

  #grantNext(name: string, subject: Subject): void {
    let [next] = subject.waiters;
    while (next !== undefined && isFree(subject, next.queues)) {
      subject.waiters.shift();
      next.grant(this.#take(name, subject, next.queues));
      [next] = subject.waiters;
    }
    // Without a hold there is no waiter either.
    if (subject.holds.length === 0) this.#subjects.delete(name);
  }

  #take(name: string, subject: Subject, queues: readonly QueueName[]): Hold {
    const hold: Hold = {
      queues,
      overlapped: subject.holds.length > 0,
      [Symbol.dispose]: () => {
        subject.holds = subject.holds.filter((other) => other !== hold);
        this.#grantNext(name, subject);
      },
    };
    for (const other of subject.holds) other.overlapped = true;
    subject.holds.push(hold);
    return hold;
  }
}

function isFree(subject: Subject, queues: readonly QueueName[]): boolean {
  return subject.holds.every((hold) => hold.queues.every((queue) => !queues.includes(queue)));
}
