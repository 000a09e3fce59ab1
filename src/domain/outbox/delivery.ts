import type { LicenseSnapshot } from '../agent/license-snapshot.ts';
import { isUnanswered, type Operation } from './operation.ts';
import { usesAfter } from './uses.ts';
import { minuteMs } from '../time.ts';

/** What the first operation of a queue needs next. */
export type Step =
  /** Nothing to do, or the operation is in flight. */
  | { step: 'none' }
  /** Until when to wait (monotonic ms, `Clock.monotonic`): an earlier request may still arrive. */
  | { step: 'wait'; until: number }
  /** Read the key first: to reconcile, to learn the count to send on, or because this attempt needs it. */
  | { step: 'read' }
  | { step: 'send'; operation: Operation; baseUses: number | null };

/** What the writer knows about a queue at one instant. */
export type QueueView = {
  /** The first unfinished operation that is not held. */
  head: Operation | null;
  snapshot: LicenseSnapshot | null;
  /** The current run of the process. */
  run: number;
  /** Monotonic ms (`Clock.monotonic`). */
  now: number;
  /** Until when an earlier request of this queue may still arrive; null if none can. */
  reconcileAt: number | null;
  /**
   * An operation of the queue waits to be read back. It need not be the head: a person may have retried another one.
   */
  hasUncertain: boolean;
  /** The key was read for this attempt. */
  justRead: boolean;
  /** The upstream is a Latchkey: it carries a change out once under its id. */
  isLatchkey: boolean;
};

/**
 * Decides the next step of a queue whose head is due (src/sync/README.md, Queues; src/sync/PLAIN-UPSTREAM.md, After a lost
 * response).
 */
export function nextStep(queue: QueueView): Step {
  const { head, now, reconcileAt, hasUncertain, isLatchkey } = queue;
  if (head === null || head.progress.state === 'in_flight') return { step: 'none' };
  if (reconcileAt !== null && reconcileAt > now) return { step: 'wait', until: reconcileAt };
  if (head.progress.state === 'uncertain' || hasUncertain) return { step: 'read' };
  return isLatchkey ? latchkeyStep(head, queue) : plainStep(head, queue);
}

function latchkeyStep(head: Operation, queue: QueueView): Step {
  const send: Step = { step: 'send', operation: head, baseUses: null };
  // A revocation does not wait for a read first: a Latchkey answers 404 if it does not know the key.
  if (head.kind === 'disable' && head.attempts === 0) return send;
  if (mayBeMissing(queue)) return { step: 'read' };
  // An enable that was recorded before the upstream had named a revision needs a read, which names one.
  const needsRevision = head.kind === 'enable' && head.seenRevision === null && !isUnanswered(head);
  return needsRevision && !queue.justRead ? { step: 'read' } : send;
}

function plainStep(head: Operation, queue: QueueView): Step {
  if (mayBeMissing(queue)) return { step: 'read' };
  // Only the Latchkey that it was sent to knows whether it was carried out. A read shows whether that is the upstream.
  if (isUnanswered(head)) return { step: 'read' };
  switch (head.kind) {
    case 'usage':
      return canCount(queue) ? sendOnBase(head, queue) : { step: 'read' };
    case 'decrease':
      // Never send on a count of 0: only a read made for this attempt shows that there is nothing to take back.
      return canCount(queue) && queue.snapshot !== null && queue.snapshot.license.uses > 0
        ? sendOnBase(head, queue)
        : { step: 'read' };
    case 'enable':
      return queue.justRead ? { step: 'send', operation: head, baseUses: null } : { step: 'read' };
    case 'disable':
    case 'create_coupon':
      return { step: 'send', operation: head, baseUses: null };
    case 'redeem':
    case 'void':
      // Only a Latchkey gets it: the response to a list of coupons shows whether the upstream is one.
      return { step: 'read' };
    default:
      return head.kind satisfies never;
  }
}

/** The upstream answered 404 about the key: nothing is sent until a read shows the key. */
function mayBeMissing({ snapshot, justRead }: QueueView): boolean {
  return !justRead && snapshot !== null && (snapshot.missingSince !== null || snapshot.readFirst);
}

/** Whether the count was read in this run, and is not in question. */
function canCount({ snapshot, run }: QueueView): boolean {
  return snapshot !== null && snapshot.run === run;
}

function sendOnBase(operation: Operation, { snapshot }: QueueView): Step {
  return { step: 'send', operation, baseUses: snapshot?.license.uses ?? null };
}

/*
 * The reconcile delay: after a lost response, the request itself may still be on its way, for example in a proxy, and
 * be applied late. Until the delay has passed, nothing is sent that could change places with that request, and no read
 * decides. (src/sync/PLAIN-UPSTREAM.md, After a lost response)
 */

/** The default of `sync.reconcile_after`, in ms. */
export const defaultReconcileAfterMs = minuteMs;

/** How long to wait between attempts, in ms (setting `sync.backoff`). */
export type BackoffPolicy = { firstMs: number; maxMs: number };

/** The default of `sync.backoff`. */
export const defaultBackoffPolicy: BackoffPolicy = { firstMs: 1_000, maxMs: 15 * minuteMs };

/**
 * The wait before the next attempt: exponential, capped, then full jitter. `failures` counts from 1; `fraction` is a
 * random number in [0, 1).
 */
export function backoffMs(policy: BackoffPolicy, failures: number, fraction: number): number {
  const ceiling = Math.min(policy.firstMs * 2 ** (Math.max(failures, 1) - 1), policy.maxMs);
  return Math.max(1, Math.round(ceiling * fraction));
}

/**
 * How many of the uncertain operations the upstream applied: the length of the longest prefix of `changes` that turns
 * the count `base` into `read`. Null if there is none: another program changed the count.
 */
export function countApplied(
  base: number,
  changes: readonly Pick<Operation, 'kind' | 'amount'>[],
  read: number,
): number | null {
  let uses = base;
  let applied = uses === read ? 0 : null;
  for (const [index, change] of changes.entries()) {
    uses = usesAfter(uses, change);
    if (uses === read) applied = index + 1;
  }
  return applied;
}
