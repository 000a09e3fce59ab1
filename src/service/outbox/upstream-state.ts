import { done, type Result } from '../../domain/problem/problem.ts';
import {
  isCountUncertain,
  isOlderEvidence,
  type LicenseSnapshot,
} from '../../domain/agent/license-snapshot.ts';
import { beginRun, currentRun } from '../lifecycle/current-run.ts';
import { mayHaveBeenApplied, type Operation } from '../../domain/outbox/operation.ts';
import type { ProductList } from '../../domain/agent/product.ts';
import { questionCoupons, forgetCoupons } from '../agent/mirror.ts';
import { storedProducts, storeProducts } from '../agent/products.ts';
import type { Context } from '../ports.ts';
import { forgetPushes } from './agent-id.ts';
import { protocolOf, stopPushing } from './protocol.ts';
import type { Reader, Transaction } from '../tables.ts';
import {
  move,
  putSnapshot,
  scheduleHead,
  queueOfOperation,
  forgetUpstream,
  boundInstance,
  boundTo,
  boundUpstream,
} from './queue.ts';

const boundSince = 'upstream_run';
const addressSince = 'upstream_address';

/** The upstream and the products of the configuration. */
type BindUpstream = {
  baseUrl: string;
  products: ProductList;
};

/** What the configuration changed for stored operations and products. */
export type BoundUpstream = {
  /** Operations that may have been applied at another upstream: only a person can decide about them now. */
  heldOperations: number;
  /** Products that have another key now. */
  renamed: readonly { from: string; to: string }[];
  /** Products that are no longer configured, and how many operations wait for them. */
  removed: readonly { productKey: string; operations: number }[];
};

/**
 * Compares the configured upstream and products with the store, at each start and reload. This upstream cannot
 * reconcile what was sent to another one: such operations are held for a person. Other waiting operations are tried
 * again after their reconcile delays. (src/sync/README.md, Change of upstream)
 */
export function bindUpstream(
  transaction: Transaction,
  { baseUrl, products }: BindUpstream,
  context: Context,
): Result<BoundUpstream> {
  const { settings } = transaction;
  const before = settings.get(boundTo);
  let heldOperations = 0;
  if (before !== baseUrl) {
    settings.set(boundTo, baseUrl);
    settings.set(boundInstance, '');
    if (before !== null) {
      // What was sent to the former upstream is held below: nothing waits for its arrival.
      stopPushing(transaction, { reconcileAfterMs: 0 }, context);
      forgetPushes(transaction);
      forgetUpstream(transaction);
      forgetCoupons(transaction);
      heldOperations = holdUncertainElsewhere(transaction, before, context);
      transaction.snapshots.restartWaits(context.monotonic);
      const since: AddressSince = { run: currentRun(transaction), at: context.now };
      settings.set(addressSince, JSON.stringify(since));
    }
  }
  const { renamed, removed } = bindProducts(transaction, products);
  // Waiting operations may have waited for another secret, key, proxy or `sync.backoff`.
  transaction.operations.endBackoff(context.monotonic);
  return done({ heldOperations, renamed, removed });
}

/** Whether another upstream said what the snapshot says. */
export function isOfOtherUpstream({ settings }: Reader, snapshot: LicenseSnapshot): boolean {
  return !isCountUncertain(snapshot) && snapshot.run < Number(settings.get(boundSince) ?? 0);
}

/** Since when (epoch ms) and which run the upstream has its address; the address changes only at a start. */
export type AddressSince = { run: number; at: number };

/** Null: the upstream has always had this address. */
export function upstreamAddressSince({ settings }: Reader): AddressSince | null {
  return JSON.parse(settings.get(addressSince) ?? 'null') as AddressSince | null;
}

/** Whether the snapshot is from an upstream at another address, and this one has said nothing yet. */
export function isOfFormerAddress(
  since: AddressSince | null,
  { run, confirmedAt }: Pick<LicenseSnapshot, 'run' | 'confirmedAt'>,
): boolean {
  return since !== null && run < since.run && confirmedAt < since.at;
}

/**
 * Whether a response is older than what is known of a key. It must not replace a newer "no". What an upstream at another
 * address has said does not count.
 */
export function isOlderThanKnown(reader: Reader, snapshot: LicenseSnapshot, confirmedAt: number): boolean {
  return isOlderEvidence(confirmedAt, snapshot) && !isOfFormerAddress(upstreamAddressSince(reader), snapshot);
}

/**
 * Handles the instance that a response names. Another instance at the same address (it was restored or replaced) did
 * not receive what was sent before.
 */
export function observeInstance(
  transaction: Transaction,
  instance: string | undefined,
  context: Context,
): void {
  const { settings } = transaction;
  if (instance === undefined) return;
  const before = settings.get(boundInstance) ?? '';
  if (before === instance) return;
  const sentTo = boundUpstream(transaction);
  settings.set(boundInstance, instance);
  if (before === '') return;
  holdUncertainElsewhere(transaction, sentTo, context);
  questionCoupons(transaction);
}

/**
 * Holds an operation that may have been applied at another upstream or instance. A disable is repeated to any
 * upstream. If the instance was unknown when the operation was sent, it is taken for the instance that named itself
 * since.
 */
export function holdIfElsewhere(
  transaction: Transaction,
  operation: Operation,
  { monotonic }: Pick<Context, 'monotonic'>,
): Operation {
  const { upstream } = operation;
  const isElsewhere =
    upstream !== null &&
    upstream !== boundUpstream(transaction) &&
    upstream !== transaction.settings.get(boundTo);
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

function holdUncertainElsewhere(transaction: Transaction, before: string, { monotonic }: Context): number {
  // Every snapshot until now, also of this run, is from the former upstream.
  transaction.settings.set(boundSince, String(beginRun(transaction)));
  // An upstream that speaks `/sync/v1` says what became of them, also after it was restored.
  if (protocolOf(transaction) === 'latchkey') return 0;
  const now = boundUpstream(transaction);
  const uncertain = transaction.operations.uncertainElsewhere(now).filter((each) => !setsValue(each));
  for (const operation of uncertain) holdElsewhere(transaction, operation, { before, monotonic });
  return uncertain.length;
}

/** Products are compared by their ids, which never change. */
function bindProducts(
  { settings, operations }: Transaction,
  products: ProductList,
): Pick<BoundUpstream, 'renamed' | 'removed'> {
  const before = storedProducts(settings);
  const known = new Map(
    [...before.configured, ...before.removed].map(({ id, productKey }) => [id, productKey]),
  );
  const renamed = products.configured.flatMap(({ id, productKey }) => {
    const from = known.get(id) ?? productKey;
    return from === productKey ? [] : [{ from, to: productKey }];
  });
  const wasConfigured = new Set(before.configured.map(({ id }) => id));
  const removed = products.removed
    .map(({ id, productKey }) => ({ id, productKey, operations: operations.unfinishedOf(id) }))
    .filter(({ id, operations: waiting }) => waiting > 0 || wasConfigured.has(id))
    .map(({ productKey, operations: waiting }) => ({ productKey, operations: waiting }));
  storeProducts(settings, products);
  return { renamed, removed };
}
