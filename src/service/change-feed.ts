import type { Change } from './tables.ts';

type Listener = (changes: readonly Change[]) => void;

/** Announces what commits change, to everything that caches what was read from the store. */
export class ChangeFeed {
  readonly #listeners = new Set<Listener>();

  /** Calls the listener at each announcement. Returns a function that ends the subscription. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Call it after a commit and before its response is sent. */
  announce(changes: readonly Change[]): void {
    for (const listener of this.#listeners) listener(changes);
  }
}
