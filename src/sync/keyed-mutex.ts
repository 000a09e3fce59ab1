import type { LaneName } from '../domain/outbox/operation.ts';

/** Holds one or more lanes of a subject; disposing of it releases them. */
export interface LaneGuard extends Disposable {
  /** Whether another request about the same subject was under way at some time while they were held. */
  readonly overlapped: boolean;
}

type Hold = LaneGuard & { lanes: readonly LaneName[]; overlapped: boolean };
type Waiter = { lanes: readonly LaneName[]; grant: (hold: Hold) => void };
type Subject = { holds: Hold[]; waiters: Waiter[] };

/**
 * Keeps one request in flight per lane: pushes take their own lane, a read takes all lanes of its key.
 * First come, first served.
 *
 * For example: a use is on its way up when a caller has the same key read. Were both under way at once, nobody
 * could tell whether the count that was read contains the use; so the read waits for the use's answer.
 */
export class KeyLanes {
  readonly #subjects = new Map<string, Subject>();

  /** Resolves when the lanes are free; rejects with the signal's reason. */
  async enter(name: string, lanes: readonly LaneName[], signal: AbortSignal): Promise<LaneGuard> {
    signal.throwIfAborted();
    const subject = this.#subjects.get(name) ?? { holds: [], waiters: [] };
    this.#subjects.set(name, subject);
    return canEnter(subject, lanes)
      ? this.#take(name, subject, lanes)
      : await this.#wait(name, subject, { lanes, signal });
  }

  async #wait(
    name: string,
    subject: Subject,
    { lanes, signal }: { lanes: readonly LaneName[]; signal: AbortSignal },
  ): Promise<Hold> {
    const { promise, resolve, reject } = Promise.withResolvers<Hold>();
    const waiter: Waiter = { lanes, grant: resolve };
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
    while (next !== undefined && isFree(subject, next.lanes)) {
      subject.waiters.shift();
      next.grant(this.#take(name, subject, next.lanes));
      [next] = subject.waiters;
    }
    // Who waits, waits for somebody who is in.
    if (subject.holds.length === 0) this.#subjects.delete(name);
  }

  #take(name: string, subject: Subject, lanes: readonly LaneName[]): Hold {
    const hold: Hold = {
      lanes,
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
function canEnter(subject: Subject, lanes: readonly LaneName[]): boolean {
  return subject.waiters.length === 0 && isFree(subject, lanes);
}

function isFree(subject: Subject, lanes: readonly LaneName[]): boolean {
  return subject.holds.every((hold) => hold.lanes.every((lane) => !lanes.includes(lane)));
}
