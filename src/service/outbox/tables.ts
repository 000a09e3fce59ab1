import type { Backlog } from '../../domain/agent/license-snapshot.ts';
import type { Traced, QueueName, Operation, OperationState } from '../../domain/outbox/operation.ts';
import type { Page } from '../../domain/page.ts';

/** A queue that has something to do: the subject, and which of its queues. */
export type QueueKey = { subject: string; queue: QueueName; productKey: string | null };

/** The reads of one queue; each costs the same however long the queue is, where nothing else is said. */
export interface QueueReads {
  /** The first operation that is unfinished and not held. */
  head(subject: string, queue: QueueName): Operation | null;
  /** Whether there is no operation that is unfinished and not held. */
  isIdle(subject: string, queue: QueueName): boolean;
  /** The last operation that is unfinished, held ones included. */
  tail(subject: string, queue: QueueName): Operation | null;
  /** Those that wait to be read back, in order. */
  uncertain(subject: string, queue: QueueName): Operation[];
  /**
   * Until when a request of the queue, also one whose operation was dropped since, may still be on its way;
   * null when that is before `now`. `asDisable`: without disables, which set a value and may be repeated.
   */
  reconcileAt(subject: string, queue: QueueName, now: number, asDisable: boolean): number | null;
  /** What the unfinished operations of a license key add up to. */
  backlog(licenseKey: string): Backlog;
  /** Of a license key, in order and as many as there are: unfinished, and disables that are conflicted or dead. */
  shown(licenseKey: string): Operation[];
  /** Those of a queue that a person must decide, in order. */
  held(subject: string, queue: QueueName): Operation[];
  /** Of a subject: conflicted and dead ones, in order. */
  dead(subject: string): Operation[];
}

export interface OperationReads extends QueueReads {
  get(id: string): Operation | null;
  /** In order; all that is not finished when no state is given. */
  list(state: OperationState | null, page: Page): Operation[];
  /** Of a license key, in order: what is unfinished, conflicted or dead, or the part of it that is in this state. */
  openOf(licenseKey: string, state: OperationState | null, page: Page): Operation[];
  countOpenOf(licenseKey: string, state: OperationState | null): number;
  /** How many are in each state. */
  depth(): Record<OperationState, number>;
  /** How many are still to be delivered, or wait for a person uncertain. */
  unfinished(): number;
  /** How many are held for a person to decide. */
  heldCount(): number;
  /** How many of a product are unfinished. */
  unfinishedOf(productKey: string): number;
  /** The highest `seq` so far; 0 when there is none. */
  lastSeq(): number;
  /** Epoch ms of the oldest that is unfinished. */
  oldestAt(): number | null;
  /** Queues whose head may take its next step, longest due first, of the products (null: of none) that are asked for. */
  due(now: number, limit: number, isAsked: (productKey: string | null) => boolean): QueueKey[];
  /** When the next queue is due after `now`; null when none is. */
  nextDueAt(now: number): number | null;
}
export interface OperationTable extends OperationReads {
  add(operation: Omit<Operation, 'seq'>): Operation;
  put(operation: Operation): void;
  /** Writes when an operation may take its next step, and why it waits: nothing else of it. */
  schedule(operation: Operation): void;
  /** Unfinished operations of a queue in order, held ones left out; as many as there are. */
  queue(subject: string, queue: QueueName): Operation[];
  /** In order, read as they are taken: each may be changed meanwhile, and those behind it. */
  withState(state: OperationState): Iterable<Operation>;
  /** Those uncertain that were last sent to another upstream: neither held yet nor on their way. */
  uncertainElsewhere(upstream: string): Operation[];
  /** Extends every reconcile delay that had not passed at `reached` to `until`: after a start its remainder is unknown. */
  extendReconcileDelays(reached: number, until: number): void;
  /** Puts the operations of one spelling of a license key into the queues of another; their heads are to be scheduled. */
  moveToSubject(from: string, to: string): void;
  /** Lets every queue that waits because of an outage go on at `now`. */
  endOutage(now: number): void;
  /** Ends the wait of every queue at `now`, reconcile delays excepted. */
  endBackoff(now: number): void;
  /** Moves the time of every waiting queue, when `Clock.elapsed` has begun anew. */
  shiftWaits(byMs: number): void;
  /** Dates at most so many that were finished in the future to `now`; returns how many there were. */
  bringBack(now: number, limit: number): number;
  /** Removes at most so many that were finished before an instant; gives how many there were. */
  prune(finishedBefore: number, limit: number): number;
}

/** What happens to operations in a transaction; told once it is committed. */
export interface Trace {
  add(traced: Traced): void;
  /** What was added since it was last taken, in order. */
  take(): readonly Traced[];
}
