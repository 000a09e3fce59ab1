import { dueAt, mayHaveSeat } from '../domain/held-lease.ts';
import type { HeldLease } from '../domain/lease.ts';
import { heldStatement } from '../service/held-lease.ts';
import type { Reader } from '../../../service/tables.ts';
import { keysIn, signerOf } from './device-documents.ts';

/** What is known about a license key besides its row. `retryAt`, `waitFrom` and `waitedAt`: monotonic ms. */
export type KeyState = {
  /** When the next request is due (epoch ms). */
  dueAt: number;
  retryAt: number;
  failures: number;
  lastError: string | null;
  /** How many exchanges about the key are under way or wait for their turn. */
  busy: number;
  /** Whether a request is wanted although none is due. */
  isAsked: boolean;
  /** Ends the wait at the issuer; null: none is under way. */
  waiting: AbortController | null;
  canWait: boolean;
  waitFrom: number;
  waitedAt: number;
  refreshedAt: number;
  /** The warning that was logged last: the expiry and the days. */
  warned: string;
};

export function newKeyState(facts: Pick<KeyState, 'dueAt' | 'canWait'>): KeyState {
  return {
    ...facts,
    retryAt: 0,
    failures: 0,
    lastError: null,
    busy: 0,
    isAsked: false,
    waiting: null,
    waitFrom: 0,
    waitedAt: 0,
    refreshedAt: -Infinity,
    warned: '',
  };
}

/**
 * When requests of a holder are due. Programs get the newest key statement with each lease, so they do not believe a lease
 * of a key that was retired: its renewal is due at once.
 */
export class DueTimes {
  readonly #reader: Pick<Reader, 'heldLeases' | 'settings'>;
  #read: { text: string; keys: ReadonlySet<string> } | null = null;
  /** The statement at the last call of `noteChange`. */
  #noted: string | null | undefined;

  constructor(reader: Pick<Reader, 'heldLeases' | 'settings'>) {
    this.#reader = reader;
  }

  /** Calls `note` for all leases at the first call, and after another key statement was recorded. */
  noteChange(note: (held: HeldLease) => void): void {
    const text = heldStatement(this.#reader)?.text ?? null;
    if (text === this.#noted) return;
    this.#noted = text;
    for (const held of this.#reader.heldLeases.all()) note(held);
  }

  /** When the next request is due by itself (epoch ms): at once for a lease of a key that is not listed. */
  at(held: HeldLease): number {
    const { document, wanted } = held;
    if (document === null || document.kind === 'unproven') return dueAt(held);
    const isOfRetiredKey = wanted === 'active' && mayHaveSeat(held) && !this.#lists(signerOf(document.text));
    return isOfRetiredKey ? 0 : dueAt(held);
  }

  #lists(kid: string): boolean {
    const statement = heldStatement(this.#reader);
    if (statement === null) return true;
    const { text } = statement;
    if (this.#read?.text !== text) this.#read = { text, keys: keysIn(text) };
    return this.#read.keys.has(kid);
  }
}
