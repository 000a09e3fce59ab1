import type { Backlog } from '../../domain/agent/license-snapshot.ts';
import type { QueueName, Operation, OperationState } from '../../domain/outbox/operation.ts';
import type { Traced } from '../../domain/outbox/trace.ts';
import type { Page } from '../../domain/page.ts';
import type { Search } from '../../domain/search.ts';

/** A queue that has something to do. */
export type QueueKey = { subject: string; queue: QueueName; productId: string | null };

/** Reads of one queue. Unless noted, the cost does not depend on the length of the queue. */
export interface QueueReads {
  /** The first operation that is unfinished and not held. */
  head(subject: string, queue: QueueName): Operation | null;
  /** Whether there is no unfinished operation that is not held. */
  isIdle(subject: string, queue: QueueName): boolean;
  /** The last unfinished operation, also if it is held. */
  tail(subject: string, queue: QueueName): Operation | null;
  /** The operations that wait to be read back, in order. */
  uncertain(subject: string, queue: QueueName): Operation[];
  /**
   * Until when a request of the queue may still arrive, also the request of a dropped operation; null if that is
   * before `now`. `asDisable`: without disables, which may be repeated.
   */
  reconcileAt(subject: string, queue: QueueName, now: number, asDisable: boolean): number | null;
  /** What the unfinished operations of a license key add up to. */
  backlog(licenseKey: string): Backlog;
  /** All unfinished operations of a license key, and disables that are conflicted or dead; in order. */
  visibleToCallers(licenseKey: string): Operation[];
  /** The operations of a queue that a person must decide about, in order. */
  held(subject: string, queue: QueueName): Operation[];
  /** The conflicted and dead operations of a subject, in order. */
  dead(subject: string): Operation[];
}

export interface OperationReads extends QueueReads {
  get(id: string): Operation | null;
  /** In order; every operation that is not finished if no state is given. */
  list(state: OperationState | null, page: Page): Operation[];
  /** The operations of a license key that are unfinished, conflicted or dead, or those in one state; in order. */
  openOf(licenseKey: string, state: OperationState | null, page: Page): Operation[];
  countOpenOf(licenseKey: string, state: OperationState | null): number;
  /** Those of `list` whose subject, or the e-mail address of the buyer, has a text in it; in order. */
  found(search: Search, state: OperationState | null, page: Page): Operation[];
  /** Counts them up to `maxFound`: a greater number only says that there are more. */
  countFound(search: Search, state: OperationState | null): number;
  /** How many are in each state. */
  depth(): Record<OperationState, number>;
  /** How many are still to be delivered or wait for a person. */
  unfinished(): number;
  /** How many are held for a person to decide. */
  heldCount(): number;
  /** How many of a product are unfinished. */
  unfinishedOf(productId: string): number;
  /** The highest `seq` so far; 0 when there is none. */
  lastSeq(): number;
  /**
   * The id of the last use, or use taken back, that an upstream has carried out for a product since an instant (epoch ms).
   * Null also if many operations of other products have finished later.
   */
  lastCarriedOut(productId: string, upstream: string, since: number): string | null;
  /** Epoch ms of the oldest that is unfinished. */
  oldestAt(): number | null;
  /** Queues whose head is due, longest due first, of the products (null: of no product) that are asked for. */
  due(now: number, limit: number, isAsked: (productId: string | null) => boolean): QueueKey[];
  /** When the next queue is due after `now`; null when none is. */
  nextDueAt(now: number): number | null;
}
/** The lists of operations. */
export type OperationListReads = Pick<
  OperationReads,
  'list' | 'openOf' | 'countOpenOf' | 'found' | 'countFound'
>;
export interface OperationTable extends OperationReads {
  add(operation: Omit<Operation, 'seq'>): Operation;
  put(operation: Operation): void;
  /** Writes only when an operation may take its next step, and why it waits. */
  schedule(operation: Operation): void;
  /** All unfinished operations of a queue that are not held, in order. */
  queue(subject: string, queue: QueueName): Operation[];
  /** In order, read one by one: the operation and those after it may be changed meanwhile. */
  withState(state: OperationState): Iterable<Operation>;
  /** Operations that may have been applied at another upstream and are neither held nor in flight. */
  uncertainElsewhere(upstream: string): Operation[];
  /** Operations that were delivered to an upstream, between two numbers (the first excluded), in order. */
  deliveredAfter(seq: number, last: number, upstream: string, limit: number): Operation[];
  /** The upstream was restored: callers have seen nothing of its new history. */
  clearSeenRevisions(): void;
  /** Extends each reconcile delay that had not passed at `reached` to `until`: after a start, the rest is unknown. */
  extendReconcileDelays(reached: number, until: number): void;
  /** Moves the operations of an alias to the queues of a license key; schedule their heads afterwards. */
  moveToSubject(from: string, to: string): void;
  /** Ends the wait of every queue that waits because of an outage. */
  endOutage(now: number): void;
  /** Ends the wait of every queue, except reconcile delays. */
  endBackoff(now: number): void;
  /** Moves the time of every waiting queue after a restart by which `Clock.monotonic` went back. */
  shiftWaits(byMs: number): void;
  /** Dates at most `limit` operations that finished in the future to `now`; returns how many. */
  clampToNow(now: number, limit: number): number;
  /** Removes at most `limit` operations that finished before an instant, the oldest first; returns how many. */
  prune(finishedBefore: number, limit: number): number;
}

/** What happens to operations in a transaction; logged after the commit. */
export interface Trace {
  add(traced: Traced): void;
  /** What was added since the last call, in order. */
  take(): readonly Traced[];
}
