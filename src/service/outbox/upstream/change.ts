import { storeOf } from '../../../domain/latchkey.ts';
import {
  isHeld,
  isUnanswered,
  mayHaveBeenApplied,
  queueOf,
  type Operation,
} from '../../../domain/outbox/operation.ts';
import type { Applied } from '../../../domain/outbox/outcome.ts';
import type { ProductList } from '../../../domain/agent/product.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import { expireCoupons, forgetCoupons } from '../../agent/mirror.ts';
import { bindProducts, type BoundProducts } from '../../agent/products.ts';
import { nameStoreAbove } from '../../lifecycle/epoch.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { move, putSnapshot, scheduleHead, queueOfOperation } from '../queue.ts';
import { beginAddress, endFormerUpstream } from './former.ts';
import {
  beginHistory,
  boundUpstream,
  isLatchkey,
  isUpstreamKnown,
  storeAddress,
  storedEpoch,
  storeEpoch,
  upstreamAddress,
} from './identity.ts';
import { beginResume, endResume } from './lost-operations.ts';
import { forgetUpstream } from './waits.ts';

/* What follows when the upstream turns out to be another one, or the same with another history. */

/** The upstream and the products of the configuration. */
type BindUpstream = {
  baseUrl: string;
  products: ProductList;
};

/** What the configuration changed for stored operations and products. */
export type BoundUpstream = BoundProducts & {
  /** Operations that may have been applied at another upstream: only a person can decide about them now. */
  heldOperations: number;
};

/**
 * Compares the configured upstream and products with the store, at each start and reload. This upstream cannot
 * reconcile what was sent to another one: such operations are held for a person. Other waiting operations are tried
 * again after their reconcile delays. (src/sync/PLAIN-UPSTREAM.md, Change of upstream)
 */
export function bindUpstream(
  transaction: Transaction,
  { baseUrl, products }: BindUpstream,
  context: Context,
): Result<BoundUpstream> {
  const before = upstreamAddress(transaction);
  let heldOperations = 0;
  if (before !== baseUrl) {
    const sentTo = boundUpstream(transaction);
    storeAddress(transaction, baseUrl);
    if (before !== null) {
      unfollowAll(transaction);
      endResume(transaction);
      forgetUpstream(transaction);
      forgetCoupons(transaction);
      heldOperations = leaveUpstream(transaction, sentTo, context);
      transaction.snapshots.restartWaits(context.monotonic);
      beginAddress(transaction, context);
    }
  }
  const boundProducts = bindProducts(transaction, products);
  // Waiting operations may have waited for another secret, key, proxy or `sync.backoff`.
  transaction.operations.endBackoff(context.monotonic);
  return done({ heldOperations, ...boundProducts });
}

/**
 * Handles the epoch that an answer of the upstream names (`Latchkey-Epoch`); undefined: none. A Latchkey that was restored
 * keeps the first half of its epoch: what was delivered is sent again under its ids. Another store at the same address
 * gets nothing again.
 */
export function observeEpoch(
  transaction: Transaction,
  { epoch, instance }: Pick<Applied<unknown>, 'epoch' | 'instance'>,
  context: Context,
): void {
  // A Latchkey that does not know its own upstream yet names no epoch.
  if (epoch === undefined && instance !== undefined) return;
  const before = storedEpoch(transaction);
  const wasKnown = isUpstreamKnown(transaction);
  const wasLatchkey = isLatchkey(transaction);
  if (epoch === before || (epoch === undefined && wasKnown)) return;
  const sentTo = boundUpstream(transaction);
  storeEpoch(transaction, epoch ?? 'plain');
  if (epoch === undefined) {
    holdDoubtful(transaction, sentTo, context);
    endOrders(transaction, context);
    return;
  }
  beginHistory(transaction);
  nameStoreAbove(transaction, epoch);
  if (!wasLatchkey) {
    holdDoubtful(transaction, sentTo, context);
    return;
  }
  unfollowAll(transaction);
  expireCoupons(transaction);
  if (storeOf(before) === storeOf(epoch)) beginResume(transaction);
  else leaveUpstream(transaction, sentTo, context);
}

/** A refused probe has shown that the upstream is a Latchkey. */
export function nameUpstream(
  transaction: Transaction,
  { epoch }: { epoch: string },
  context: Context,
): Result<null> {
  observeEpoch(transaction, { epoch }, context);
  return done(null);
}

/** An answer is older than what was known before it was asked for: the store of the upstream was put back by hand. */
export function observeOlderStore(transaction: Transaction): void {
  beginHistory(transaction);
  unfollowAll(transaction);
  expireCoupons(transaction);
  beginResume(transaction);
}

/** The upstream has said that it is another store than before. `epoch`: undefined: its next answer names it. */
export function observeOtherStore(
  transaction: Transaction,
  epoch: string | undefined,
  context: Context,
): void {
  if (epoch !== undefined) {
    observeEpoch(transaction, { epoch }, context);
    // Another answer may have named the store while the change was in flight.
    holdDoubtful(transaction, 'another store', context);
    return;
  }
  const sentTo = boundUpstream(transaction);
  storeEpoch(transaction, 'unknown');
  unfollowAll(transaction);
  expireCoupons(transaction);
  leaveUpstream(transaction, sentTo, context, true);
}

/** Nothing is known any more about what the upstream tells of followed keys. */
export function unfollowAll({ follows, snapshots }: Transaction): void {
  follows.removeAll();
  snapshots.unfollowAll();
}

/**
 * Holds an operation that may have been applied at another upstream. A disable is repeated to any upstream. If the store
 * was unknown when the operation was sent, it is taken for the store that named itself since.
 */
export function holdIfElsewhere(
  transaction: Transaction,
  operation: Operation,
  { monotonic }: Pick<Context, 'monotonic'>,
): Operation {
  const { upstream } = operation;
  const isElsewhere =
    upstream !== null && upstream !== boundUpstream(transaction) && upstream !== upstreamAddress(transaction);
  if (!isElsewhere || !mayHaveBeenApplied(operation) || setsValue(operation)) return operation;
  return holdElsewhere(transaction, operation, { before: upstream, monotonic });
}

/** Whether an operation sets a value: it may go to this upstream whatever the former one did with it. */
function setsValue({ kind }: Operation): boolean {
  return kind === 'disable';
}

/** Holds an operation that no read of this upstream can reconcile. */
function holdElsewhere(
  transaction: Transaction,
  operation: Operation,
  { before, monotonic }: { before: string; monotonic: number },
): Operation {
  const now = boundUpstream(transaction);
  const lastError = `it may have been applied at ${before}, and this agent speaks to ${now} now`;
  const held = move(transaction, { ...operation, lastError }, { type: 'hold' });
  scheduleHead(transaction, held.subject, queueOfOperation(held), { at: monotonic });
  const snapshot = transaction.snapshots.get(held.subject);
  if (snapshot !== null) putSnapshot(transaction, snapshot);
  return held;
}

/** What was known is from a former upstream now. Returns how many operations are held. */
function leaveUpstream(
  transaction: Transaction,
  sentTo: string,
  context: Context,
  isKnown: boolean = isUpstreamKnown(transaction),
): number {
  endFormerUpstream(transaction);
  return holdDoubtful(transaction, sentTo, context, isKnown);
}

/**
 * Holds what may have been applied at another upstream. `isKnown`: the upstream is known to be another one. If not, operations
 * that were sent under their ids wait until the upstream has named itself: it may be the same store at another address.
 */
function holdDoubtful(
  transaction: Transaction,
  before: string,
  { monotonic }: Context,
  isKnown: boolean = isUpstreamKnown(transaction),
): number {
  const doubtful = transaction.operations
    .uncertainElsewhere(boundUpstream(transaction))
    .filter(({ upstream }) => upstream !== upstreamAddress(transaction))
    .filter((each) => !setsValue(each) && (isKnown || !isUnanswered(each)));
  for (const operation of doubtful) holdElsewhere(transaction, operation, { before, monotonic });
  return doubtful.length;
}

const staysHere = 'the upstream counts no redemptions: it stays here';

/** The upstream is no Latchkey, and only a Latchkey gets redemptions: those that wait end here. */
function endOrders(transaction: Transaction, { now }: Pick<Context, 'now'>): void {
  const { operations } = transaction;
  for (const operation of operations.withState('pending')) {
    if (queueOf[operation.kind] !== 'order' || isHeld(operation)) continue;
    const type = mayHaveBeenApplied(operation) ? 'needless' : 'cancel';
    move(transaction, { ...operation, lastError: staysHere }, { type, at: now });
  }
}
