import { isFailure } from '../../../src/domain/problem/problem.ts';
import type { Writer } from '../../../src/service/writer.ts';

/** Counts what a request does after its change is committed, and makes one of these steps fail. */
export class StepsAfterCommit {
  /** How many steps there were after the commit. */
  count = 0;
  /** Whether the change is committed. */
  isCommitted = false;
  #failing: { index: number; error: Error } | null = null;

  /** Prepares for the next request: its step with this index fails. Null: no step fails. */
  arm(failing: { index: number; error: Error } | null): void {
    this.count = 0;
    this.isCommitted = false;
    this.#failing = failing;
  }

  /** The same object, but each of its calls counts as a step. */
  watch<Target extends object>(target: Target): Target {
    return new Proxy(target, {
      get: (watched, name) => {
        const value: unknown = Reflect.get(watched, name);
        if (typeof value === 'function') {
          return (...args: unknown[]): unknown => {
            this.#step();
            return Reflect.apply(value, watched, args);
          };
        }
        return typeof value === 'object' && value !== null ? this.watch(value) : value;
      },
    });
  }

  /** The same writer: its first success is the commit, and each later write is a step. */
  writer(writer: Writer): Writer {
    return {
      write: (name, command, options) => {
        const error = this.#failure();
        if (error !== null) return Promise.reject(error);
        return writer.write(name, command, options).then((result) => {
          if (!isFailure(result)) this.isCommitted = true;
          return result;
        });
      },
    };
  }

  #step(): void {
    const error = this.#failure();
    if (error !== null) throw error;
  }

  /** Counts a step after the commit, and returns the failure for this step. */
  #failure(): Error | null {
    if (!this.isCommitted) return null;
    const index = this.count;
    this.count += 1;
    return this.#failing?.index === index ? this.#failing.error : null;
  }
}
