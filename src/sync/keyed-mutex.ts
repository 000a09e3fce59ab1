import type { QueueName } from '../domain/outbox/operation.ts';

/** Holds one or more queues of a subject; disposing of it releases them. */
export interface MutexGuard extends Disposable {
  /** Whether another request about the same subject was under way at some time while they were held. */
  readonly overlapped: boolean;
}

type Hold = MutexGuard & { queues: readonly QueueName[]; overlapped: boolean };
type Waiter = { queues: readonly QueueName[]; grant: (hold: Hold) => void };
type Subject = { holds: Hold[]; waiters: Waiter[] };

/**
 * Keeps one request in flight per queue: pushes take their own queue, a read takes all queues of its key.
 * First come, first served.
 *
 * For example: a use is on its way up when a caller has the same key read. Were both under way at once, nobody
 * could tell whether the count that was read contains the use; so the read waits for the use's answer.
 */
export class KeyedMutex {
  readonly #subjects = new Map<string, Subject>();

  /** Resolves when the queues are free; rejects with the signal's reason. */
  async enter(name: string, queues: readonly QueueName[], signal: AbortSignal): Promise<MutexGuard> {
    signal.throwIfAborted();
    const subject = this.#subjects.get(name) ?? { holds: [], waiters: [] };
    this.#subjects.set(name, subject);
    return canEnter(subject, queues)
      ? this.#take(name, subject, queues)
      : await this.#wait(name, subject, { queues, signal });
  }

  async #wait(
    name: string,
    subject: Subject,
    { queues, signal }: { queues: readonly QueueName[]; signal: AbortSignal },
  ): Promise<Hold> {
    const { promise, resolve, reject } = Promise.withResolvers<Hold>();
    const waiter: Waiter = { queues, grant: resolve };
    const leave = (): void => {
      subject.waiters = subject.waiters.filter((other) => other !== waiter);
      this.#grant(name, subject);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
    subject.waiters.push(waiter);
    return await promise.finally(() => signal.removeEventListener('abort', leave));
  }

  #grant(name: string, subject: Subject): void {
    let [next] = subject.waiters;
    while (next !== undefined && isFree(subject, next.queues)) {
      subject.waiters.shift();
      next.grant(this.#take(name, subject, next.queues));
      [next] = subject.waiters;
    }
    // Who waits, waits for somebody who is in.
    if (subject.holds.length === 0) this.#subjects.delete(name);
  }

  #take(name: string, subject: Subject, queues: readonly QueueName[]): Hold {
    const hold: Hold = {
      queues,
      overlapped: subject.holds.length > 0,
      [Symbol.dispose]: () => {
        subject.holds = subject.holds.filter((other) => other !== hold);
        this.#grant(name, subject);
      },
    };
    for (const other of subject.holds) other.overlapped = true;
    subject.holds.push(hold);
    return hold;
  }
}

/** Whether nobody has to be waited for, nor waits already. */
function canEnter(subject: Subject, queues: readonly QueueName[]): boolean {
  return subject.waiters.length === 0 && isFree(subject, queues);
}

function isFree(subject: Subject, queues: readonly QueueName[]): boolean {
  return subject.holds.every((hold) => hold.queues.every((queue) => !queues.includes(queue)));
}
