import { done, type Result } from '../../domain/problem/problem.ts';
import { isCountInQuestion, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { beginRun, currentRun } from '../lifecycle/current-run.ts';
import { mayHaveBeenApplied, type Operation } from '../../domain/outbox/operation.ts';
import type { ProductList } from '../../domain/agent/product.ts';
import { questionCoupons, forgetCoupons } from '../agent/mirror.ts';
import { storedProducts, storeProducts } from '../agent/products.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import { move, putSnapshot, scheduleHead, queueOfOperation } from './queue.ts';
import { forgetLastSuccess, forgetRetryAfter } from './sync-marks.ts';

const boundTo = 'upstream';
const boundInstance = 'upstream_instance';
const boundSince = 'upstream_boot';
const addressSince = 'upstream_address';

/** The upstream and the products as they are configured now. */
type BindUpstream = {
  baseUrl: string;
  products: ProductList;
};

/** What the configuration has changed for what was here before. */
export type BoundUpstream = {
  /** Uncertain at another upstream: only a person can reconcile them now. */
  heldOperations: number;
  /** Products that have another key now. */
  renamed: readonly { from: string; to: string }[];
  /** Products that are not configured any more, and how many operations wait for them. */
  removed: readonly { productKey: string; operations: number }[];
};

/**
 * Takes note of the upstream and the products that are configured, at each start and reload. What was sent to
 * another upstream and is uncertain is never reconciled by this one: it is held for a person. What waits is tried again,
 * but for reconcile delays.
 * (src/sync/README.md, Change of upstream)
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
      forgetLastSuccess(transaction);
      forgetRetryAfter(transaction);
      forgetCoupons(transaction);
      heldOperations = holdUncertainElsewhere(transaction, before, context);
      transaction.snapshots.startOver(context.elapsed);
      const since: AddressSince = { run: currentRun(transaction), at: context.now };
      settings.set(addressSince, JSON.stringify(since));
    }
  }
  const { renamed, removed } = bindProducts(transaction, products);
  // Another secret, key, proxy or `sync.backoff` may be what those that wait were waiting for.
  transaction.operations.endBackoff(context.elapsed);
  return done({ heldOperations, renamed, removed });
}

/** The upstream that operations are sent to: its base URL, and its instance where it tells one. */
export function boundUpstream({ settings }: Reader): string {
  const instance = settings.get(boundInstance) ?? '';
  const baseUrl = settings.get(boundTo) ?? '';
  return instance === '' ? baseUrl : `${baseUrl} ${instance}`;
}

/** Whether what was last seen of a key was said by another upstream. */
export function isOfOtherUpstream({ settings }: Reader, snapshot: LicenseSnapshot): boolean {
  return !isCountInQuestion(snapshot) && snapshot.run < Number(settings.get(boundSince) ?? 0);
}

/** Since when (epoch ms) and which start the upstream has its address; it changes at a start only. */
export type AddressSince = { run: number; at: number };

/** Null: the upstream has always had this address. */
export function upstreamAddressSince({ settings }: Reader): AddressSince | null {
  return JSON.parse(settings.get(addressSince) ?? 'null') as AddressSince | null;
}

/** Whether what was last seen of a key was said by an upstream at another address, and by this one nothing yet. */
export function isOfFormerAddress(
  since: AddressSince | null,
  { run, confirmedAt }: Pick<LicenseSnapshot, 'run' | 'confirmedAt'>,
): boolean {
  return since !== null && run < since.run && confirmedAt < since.at;
}

/**
 * Takes note of the instance that an answer of the upstream names: another one behind the same address (it
 * was restored, or replaced) did not receive what was sent before.
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
 * Holds an operation that is uncertain at another upstream, or instance of it, than is spoken to now; a disable is
 * repeated to any. Where the instance was not known yet, it is taken for the one that named itself since.
 */
export function holdIfElsewhere(
  transaction: Transaction,
  operation: Operation,
  { elapsed }: Pick<Context, 'elapsed'>,
): Operation {
  const { upstream } = operation;
  const isElsewhere =
    upstream !== null &&
    upstream !== boundUpstream(transaction) &&
    upstream !== transaction.settings.get(boundTo);
  if (!isElsewhere || !mayHaveBeenApplied(operation) || setsValue(operation)) return operation;
  return holdElsewhere(transaction, operation, { before: upstream, elapsed });
}

/** Whether an operation sets a value, so that it may go to this upstream whatever became of it at the one before. */
function setsValue({ kind }: Operation): boolean {
  return kind === 'disable';
}

/** Holds what is uncertain at the upstream of before, which no read of this one can reconcile. */
function holdElsewhere(
  transaction: Transaction,
  operation: Operation,
  { before, elapsed }: { before: string; elapsed: number },
): Operation {
  const now = boundUpstream(transaction);
  const lastError = `it may have been applied at ${before}, and this agent speaks to ${now} now`;
  const held = move(transaction, { ...operation, lastError }, { type: 'hold' });
  scheduleHead(transaction, held.subject, queueOfOperation(held), { at: elapsed });
  const snapshot = transaction.snapshots.get(held.subject);
  if (snapshot !== null) putSnapshot(transaction, snapshot);
  return held;
}

function holdUncertainElsewhere(transaction: Transaction, before: string, { elapsed }: Context): number {
  // What was seen until now was said by the one before, also since this start.
  transaction.settings.set(boundSince, String(beginRun(transaction)));
  const now = boundUpstream(transaction);
  const inDoubt = transaction.operations.uncertainElsewhere(now).filter((each) => !setsValue(each));
  for (const operation of inDoubt) holdElsewhere(transaction, operation, { before, elapsed });
  return inDoubt.length;
}

/** What has changed of the products is compared by their ids, which never change. */
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
