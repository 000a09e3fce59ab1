import { done, type Result } from '../../../domain/problem/problem.ts';
import { isCountInQuestion, type Observation } from '../../../domain/agent/observation.ts';
import { beginBoot } from '../../lifecycle/boot.ts';
import { isDoubtful, type Operation } from '../../../domain/outbox/operation.ts';
import { productCredential } from '../../access/credential.ts';
import type { Context } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';
import { forgetLastSuccess } from './last-success.ts';
import { forgetRetryAfter } from './retry-after.ts';
import { move, putObservation, scheduleHead, laneOfOperation } from '../lane.ts';

const boundTo = 'upstream';
const boundInstance = 'upstream_instance';
const boundSince = 'upstream_boot';
const boundProducts = 'products';

/** The upstream and the products as they are configured now. */
export type BindUpstream = {
  baseUrl: string;
  products: readonly { productKey: string; secretDigest: string }[];
};

/** What the configuration has changed for what was here before. */
export type BoundUpstream = {
  /** In doubt at another upstream: only a person can settle them now. */
  heldOperations: number;
  /** Products that have another key now, and the same secret: their keys and operations go along. */
  renamed: readonly { from: string; to: string }[];
  /** Products that are not configured any more, and how many operations wait for them. */
  removed: readonly { productKey: string; operations: number }[];
};

/**
 * Takes note of the upstream and the products that are configured, at each start and reload. What was sent to
 * another upstream and is in doubt is never settled by this one: it is held for a person. What waits is tried again,
 * but for fences.
 * (src/sync/README.md, One upstream)
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
      heldOperations = holdDoubtElsewhere(transaction, before, context);
    }
  }
  const { renamed, removed } = bindProducts(transaction, products);
  // Another secret, key, proxy or `sync.backoff` may be what those that wait were waiting for.
  transaction.operations.endBackoff(context.steady);
  return done({ heldOperations, renamed, removed });
}

/** The upstream that operations are sent to: its base URL, and its instance where it tells one. */
export function boundUpstream({ settings }: Reader): string {
  const instance = settings.get(boundInstance) ?? '';
  const baseUrl = settings.get(boundTo) ?? '';
  return instance === '' ? baseUrl : `${baseUrl} ${instance}`;
}

/** Whether what was last seen of a key was said by another upstream. */
export function isOfOtherUpstream({ settings }: Reader, observation: Observation): boolean {
  return !isCountInQuestion(observation) && observation.boot < Number(settings.get(boundSince) ?? 0);
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
  if (before !== '') holdDoubtElsewhere(transaction, sentTo, context);
}

/**
 * Holds an operation that is in doubt at another upstream, or instance of it, than is spoken to now; a disable is
 * repeated to any. Where the instance was not known yet, it is taken for the one that named itself since.
 */
export function holdIfElsewhere(
  transaction: Transaction,
  operation: Operation,
  { steady }: Pick<Context, 'steady'>,
): Operation {
  const { upstream } = operation;
  const isElsewhere =
    upstream !== boundUpstream(transaction) && upstream !== transaction.settings.get(boundTo);
  if (upstream === null || !isElsewhere || !isDoubtful(operation) || setsValue(operation)) return operation;
  return holdElsewhere(transaction, operation, { before: upstream, steady });
}

/** Whether an operation sets a value, so that it may go to this upstream whatever became of it at the one before. */
function setsValue({ kind }: Operation): boolean {
  return kind === 'disable';
}

/** Holds what is in doubt at the upstream of before, which no read of this one can settle. */
function holdElsewhere(
  transaction: Transaction,
  operation: Operation,
  { before, steady }: { before: string; steady: number },
): Operation {
  const now = boundUpstream(transaction);
  const lastError = `it may have been applied at ${before}, and this agent speaks to ${now} now`;
  const held = move(transaction, { ...operation, lastError }, { type: 'hold' });
  scheduleHead(transaction, held.subject, laneOfOperation(held), { at: steady });
  const observation = transaction.observations.get(held.subject);
  if (observation !== null) putObservation(transaction, observation);
  return held;
}

function holdDoubtElsewhere(transaction: Transaction, before: string, { steady }: Context): number {
  // What was seen until now was said by the one before, also since this start.
  transaction.settings.set(boundSince, String(beginBoot(transaction)));
  const now = boundUpstream(transaction);
  const inDoubt = transaction.operations.inDoubtElsewhere(now).filter((each) => !setsValue(each));
  for (const operation of inDoubt) holdElsewhere(transaction, operation, { before, steady });
  return inDoubt.length;
}

function bindProducts(
  transaction: Transaction,
  products: BindUpstream['products'],
): Pick<BoundUpstream, 'renamed' | 'removed'> {
  const { settings, operations } = transaction;
  const digestOf = new Map(products.map(({ productKey, secretDigest }) => [productKey, secretDigest]));
  const before = new Map(JSON.parse(settings.get(boundProducts) ?? '[]') as [string, string][]);
  const missing = [...before].filter(([productKey]) => !digestOf.has(productKey));
  const renamed: { from: string; to: string }[] = [];
  const removed: { productKey: string; operations: number }[] = [];
  for (const [from, digest] of missing) {
    const to = products.find(
      ({ productKey, secretDigest }) => secretDigest === digest && !before.has(productKey),
    );
    if (to === undefined) {
      removed.push({ productKey: from, operations: operations.unfinishedOf(from) });
    } else {
      renameProduct(transaction, from, to.productKey);
      renamed.push({ from, to: to.productKey });
    }
  }
  // A removed product stays known as long as something waits for it, so that each start says so.
  const kept = new Set(
    removed.filter((product) => product.operations > 0).map(({ productKey }) => productKey),
  );
  const known = [...digestOf, ...missing.filter(([productKey]) => kept.has(productKey))];
  settings.set(boundProducts, JSON.stringify(known));
  return { renamed, removed };
}

/** The same product under another key: whatever is kept for it goes along. */
function renameProduct(
  { observations, operations, tokens, idempotency }: Transaction,
  from: string,
  to: string,
): void {
  for (const table of [observations, operations, tokens]) table.renameProduct(from, to);
  idempotency.renameCredential(productCredential(from), productCredential(to));
}
