import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { TimeMark } from '../../../src/domain/clock.ts';
import { storedTime } from '../../../src/service/lifecycle/time-mark.ts';
import type { SyncPolicy } from '../../../src/service/outbox/queue.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import { createTables } from '../../../src/store/sqlite/files/migrations.ts';
import { prepareTransaction } from '../../../src/store/sqlite/connection.ts';
import type { ParsedRequest, Origin } from './ledger.ts';

/** What the agent is configured with; a change takes effect at once, as after a SIGHUP. */
export type Configuration = {
  writers: SyncPolicy['writers'];
  onUncertain: SyncPolicy['onUncertain'];
  concurrency: number;
  /** By product key. */
  secrets: Map<string, string>;
  apiKey: string;
  /** Where the upstream is, as of the next start. */
  baseUrl: string;
};

/** What goes wrong inside the machine; shares are from 0 to 1. */
export type Faults = {
  /** The share of commits at which the process dies. */
  crashes: number;
  /** Only what must be written is, and that not always at the first try. */
  isFull: boolean;
  /** The step after a commit that fails next, once: an answer is not kept, or what came of a change cannot be read. */
  afterCommit: 'keep' | 'read' | null;
};

/** The longest wait after a failed attempt, in ms. */
export const longestBackoffMs = 900_000;
/** How long after a read a key is read again, in ms. */
export const refreshMs = 600_000;
export const freshness = {
  freshMs: 3_600_000,
  staleMs: 7_200_000,
  graceMs: 14_400_000,
  expiryGraceMs: 600_000,
};
const unknown = { operation: null, seq: 0 };

/** The store of one machine, which outlives its processes. */
export class Machine implements Disposable {
  readonly database: DatabaseSync;
  readonly transaction: Transaction;
  /** Differs from the ids of the stores that it was restored from. */
  readonly incarnation: number;
  readonly #inFlight: StatementSync;
  readonly #kept: StatementSync;
  readonly #held: StatementSync;

  /** Made anew, or from a backup. */
  constructor(incarnation = 1, backup: Uint8Array | null = null) {
    this.incarnation = incarnation;
    this.database = new DatabaseSync(':memory:');
    if (backup === null) createTables(this.database);
    else this.database.deserialize(backup);
    this.transaction = prepareTransaction(this.database);
    this.#inFlight = this.database.prepare(
      `SELECT id, seq FROM outbox WHERE state = 'in_flight' AND subject = ? COLLATE NOCASE AND kind = ?`,
    );
    this.#held = this.database.prepare(
      'SELECT 1 FROM license_snapshot WHERE license_key = ? COLLATE NOCASE AND buyer_email = ?',
    );
    this.#kept = this.database.prepare(
      `SELECT subject, kind, count(*) AS kept FROM outbox WHERE queue = 'counter' GROUP BY subject, kind`,
    );
  }

  backup(): Uint8Array {
    return this.database.serialize();
  }

  /** The operation that the outbox says is in flight. */
  originOf({ subject, what }: ParsedRequest): Origin {
    const row = this.#inFlight.get(subject, what);
    const found = row === undefined ? unknown : { operation: String(row['id']), seq: Number(row['seq']) };
    return { ...found, incarnation: this.incarnation };
  }

  /** Whether an answer of the upstream is the one that the store holds of its key. */
  holds({ licenseKey, buyerEmail }: { licenseKey: string; buyerEmail: string }): boolean {
    return this.#held.get(licenseKey, buyerEmail) !== undefined;
  }

  /** By subject and kind: how many operations of the counter there are. */
  kept(): { name: string; kept: number }[] {
    const rows = this.#kept.all() as { subject: string; kind: string; kept: number }[];
    return rows.map(({ subject, kind, kept }) => ({ name: `${subject} ${kind}`, kept }));
  }

  /** The ids of the operations that are not finished, or wait for a person. */
  unfinished(): string[] {
    const rows = this.database.prepare('SELECT id FROM outbox WHERE finished_at IS NULL').all();
    return rows.map(({ id }) => String(id));
  }

  /** The stored time. */
  async storedTime(): Promise<TimeMark | null> {
    return await storedTime(this.transaction);
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}
