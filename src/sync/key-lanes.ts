import type { LaneName } from '../domain/operation.ts';

/** A stay in one or more lanes of a subject; disposing of it leaves them. */
export interface LaneGuard extends Disposable {
  /** Whether another request about the same subject was under way at some time of this stay. */
  readonly overlapped: boolean;
}

type Visit = { lanes: readonly LaneName[]; overlapped: boolean };
type Waiter = { lanes: readonly LaneName[]; enter: (visit: Visit) => void };
type Subject = { visits: Visit[]; waiters: Waiter[] };

/**
 * Keeps one request in flight per lane: pushes take their own lane, a read takes all lanes of its key.
 * Who comes first is let in first.
 */
export class KeyLanes {
  readonly #subjects = new Map<string, Subject>();

  /** Resolves when the lanes are free; rejects with the signal's reason. */
  async enter(name: string, lanes: readonly LaneName[], signal: AbortSignal): Promise<LaneGuard> {
    signal.throwIfAborted();
    const subject = this.#subjects.get(name) ?? { visits: [], waiters: [] };
    this.#subjects.set(name, subject);
    const { promise, resolve, reject } = Promise.withResolvers<Visit>();
    const waiter: Waiter = { lanes, enter: resolve };
    const give = (): void => {
      subject.waiters = subject.waiters.filter((other) => other !== waiter);
      this.#letIn(name, subject);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', give, { once: true });
    subject.waiters.push(waiter);
    this.#letIn(name, subject);
    const visit = await promise.finally(() => signal.removeEventListener('abort', give));
    return {
      get overlapped() {
        return visit.overlapped;
      },
      [Symbol.dispose]: () => {
        subject.visits = subject.visits.filter((other) => other !== visit);
        this.#letIn(name, subject);
      },
    };
  }

  #letIn(name: string, subject: Subject): void {
    let [next] = subject.waiters;
    while (next !== undefined && isFree(subject, next.lanes)) {
      const visit = { lanes: next.lanes, overlapped: subject.visits.length > 0 };
      for (const other of subject.visits) other.overlapped = true;
      subject.visits.push(visit);
      subject.waiters.shift();
      next.enter(visit);
      [next] = subject.waiters;
    }
    if (subject.visits.length === 0 && subject.waiters.length === 0) this.#subjects.delete(name);
  }
}

function isFree(subject: Subject, lanes: readonly LaneName[]): boolean {
  return subject.visits.every((visit) => visit.lanes.every((lane) => !lanes.includes(lane)));
}
