import type { QueueName } from '../domain/outbox/operation.ts';
import { unlessAborted } from './waiting.ts';

/** Holds one or more queues of a subject; disposing releases the queues. */
export interface MutexGuard extends Disposable {
  /** Whether another request about the same subject was under way at some time while the queues were held. */
  readonly overlapped: boolean;
}

type Hold = MutexGuard & { queues: readonly QueueName[]; overlapped: boolean };
type Waiter = { queues: readonly QueueName[]; grant: (hold: Hold) => void };
type Subject = { holds: Hold[]; waiters: Waiter[] };

/**
 * A mutex for each queue: a push holds its own queue, and a read holds all queues of its key. First come, first served.
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
    return await unlessAborted(promise, signal, () => {
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
