import type { LicenseSnapshot } from '../agent/license-snapshot.ts';
import type { Operation } from './operation.ts';
import { countAfter } from '../license.ts';

/** What the head of a queue needs next. */
export type Step =
  /** Nothing, or what is in flight. */
  | { step: 'none' }
  /** Nothing before then (`Clock.elapsed`): an earlier request may still be on its way. */
  | { step: 'wait'; until: number }
  /** Ask the upstream first: to reconcile uncertainty, for a base to count from, or because the attempt needs it. */
  | { step: 'read' }
  | { step: 'send'; operation: Operation; baseUses: number | null };

/** A queue as the writer sees it at one instant. */
export type QueueView = {
  /** The first that is unfinished, leaving out those that a person must decide. */
  head: Operation | null;
  snapshot: LicenseSnapshot | null;
  /** The current start of this process. */
  run: number;
  /** `Clock.elapsed`. */
  now: number;
  /** Until when an earlier request of this queue may still be on its way; null when none is. */
  reconcileAt: number | null;
  /** An operation of the queue waits to be read back; it need not be the head, once a person has retried another. */
  hasUncertain: boolean;
  /** The queue has been read for this very attempt. */
  justRead: boolean;
};

/**
 * The next step of a queue (src/sync/README.md, Queues and After a lost response). When its head is due is for the
 * store's `next_at` to say; this decides only what is done then.
 */
export function nextStep(queue: QueueView): Step {
  const { head, snapshot, justRead, now, reconcileAt, hasUncertain } = queue;
  if (head === null || head.progress.state === 'in_flight') return { step: 'none' };
  if (reconcileAt !== null && reconcileAt > now) return { step: 'wait', until: reconcileAt };
  if (head.progress.state === 'uncertain' || hasUncertain) return { step: 'read' };
  if (!justRead && snapshot !== null && mayBeMissing(snapshot)) return { step: 'read' };
  switch (head.kind) {
    case 'usage':
      return canCount(queue) ? send(head, queue) : { step: 'read' };
    case 'decrease':
      // Never sent at 0: only a read made for this attempt may decide that there is nothing to take back.
      return canCount(queue) && snapshot !== null && snapshot.license.uses > 0
        ? send(head, queue)
        : { step: 'read' };
    case 'enable':
      return justRead ? { step: 'send', operation: head, baseUses: null } : { step: 'read' };
    case 'disable':
    case 'create_coupon':
      return { step: 'send', operation: head, baseUses: null };
    default:
      return head.kind satisfies never;
  }
}

/** The upstream has answered 404 about the key: writes wait until a read shows it. */
function mayBeMissing({ missingSince, readFirst }: LicenseSnapshot): boolean {
  return missingSince !== null || readFirst;
}

/** Whether there is a count to send on: one that was seen since the start, and is not in question. */
function canCount({ snapshot, run }: QueueView): boolean {
  return snapshot !== null && snapshot.run === run;
}

function send(operation: Operation, { snapshot }: QueueView): Step {
  return { step: 'send', operation, baseUses: snapshot?.license.uses ?? null };
}

/*
 * The reconcile delay: after an answer was lost, the request itself may still be on its way (in a proxy, in a slow
 * server) and be applied late. Until the reconcile delay has passed, nothing that it could overtake or be overtaken by
 * is sent, and no read of the upstream can say what became of it. (src/sync/README.md, After a lost response)
 */

/** The default of `sync.reconcile_after`, in ms. */
export const defaultReconcileAfterMs = 60_000;

/** How long to wait between attempts, in ms (configuration `sync.backoff`). */
export type BackoffPolicy = { firstMs: number; maxMs: number };

/** The default of `sync.backoff`. */
export const defaultBackoffPolicy: BackoffPolicy = { firstMs: 1_000, maxMs: 15 * 60_000 };

/**
 * The wait before the next attempt: exponential with full jitter, the jitter applied after the cap.
 * `failures` counts from 1; `draw` is a random number in [0, 1).
 */
export function backoffMs(policy: BackoffPolicy, failures: number, draw: number): number {
  const ceiling = Math.min(policy.firstMs * 2 ** (Math.max(failures, 1) - 1), policy.maxMs);
  return Math.max(1, Math.round(ceiling * draw));
}

/** A counter operation, as far as arithmetic goes. */
export type CounterKind = 'usage' | 'decrease';

/**
 * Reconciles uncertain counter operations by what the upstream's count became: how many of `kinds`, in
 * order from the first, explain the way from `base` to `read`. The longest such run is taken, since every
 * run that ends at `read` leads to the same final count. Null when none explains it: another writer.
 */
export function countApplied(base: number, kinds: readonly CounterKind[], read: number): number | null {
  let uses = base;
  let applied = uses === read ? 0 : null;
  for (const [index, kind] of kinds.entries()) {
    uses = countAfter(uses, kind);
    if (uses === read) applied = index + 1;
  }
  return applied;
}
