import * as useCases from './use-cases.ts';
import { isFailure, storedResult, storeResult } from './access/records.ts';
import { answerAgain, isToRepeat, shortAnswer } from './keyed-answers.ts';
import type { Context, WriterContext } from './ports.ts';
import type { Awaitable, AuditEntry } from './tables.ts';
import type {
  CommandOf,
  CommandResult,
  TransactionOf,
  UseCaseName,
  UseCases,
  WriteRequest,
} from './writer.ts';
import { formatDatetime } from '../domain/time.ts';
import type { Product } from '../domain/catalogue.ts';
import type { Token } from '../domain/access/principal.ts';
import { storeEvents } from './events.ts';
import { counted } from '../domain/text.ts';
import { features } from '../features.ts';
import type { Locks } from './locks.ts';
import { type Audited, type AuditEntries, endOfOld, type FeatureUseCases } from './audited.ts';

declare module '../feature.ts' {
  interface Feature {
    /** Its use cases that write, and what each locks on a database that several processes write to. */
    readonly useCases?: {
      readonly load: () => Promise<FeatureUseCases>;
      readonly locks: { readonly [Name in UseCaseName]?: (command: CommandOf<Name>) => Locks };
      /** Those that run on a local store only, and lock nothing. */
      readonly local?: readonly UseCaseName[];
      /** Maintenance that one node does for all nodes: the result for those that try at the same time. */
      readonly byOneNode?: { readonly [Name in UseCaseName]?: CommandResult<Name> };
      /** Those that run even if the disk is full. */
      readonly essential?: readonly UseCaseName[];
    };
  }
}

/** The use cases of features are added when the first of them runs. */
const byName: Partial<UseCases> = { ...useCases };

const processActor = 'latchkey';

/**
 * Runs one use case in a transaction, once per idempotency key, and adds its audit entry. Awaits nothing but the
 * tables.
 */
export async function runUseCase<Name extends UseCaseName>(
  transaction: TransactionOf<Name>,
  request: WriteRequest<Name>,
  writerContext: WriterContext,
): Promise<CommandResult<Name>> {
  const { name, command, writeOptions } = request;
  const context: Context = {
    ...writerContext,
    actor: writeOptions.actor ?? processActor,
    requestId: writeOptions.requestId ?? null,
  };
  // No wait in the way of every write.
  if (byName[name] === undefined) await loadUseCases([name]);
  // The compiler cannot see that a name and its command belong together.
  const useCase = byName[name] as (
    transaction: TransactionOf<Name>,
    command: CommandOf<Name>,
    context: Context,
  ) => Awaitable<CommandResult<Name>>;
  const { idempotency = null } = writeOptions;
  const stored = idempotency === null ? null : await storedResult(transaction, idempotency, context);
  // The fingerprints are equal, so the stored result comes from this use case.
  if (typeof stored === 'number') {
    const again = await answerAgain(transaction, name, command as { licenseKey: string }, stored);
    return again as CommandResult<Name>;
  }
  const asked = { command, keyed: idempotency?.keyed };
  if (stored !== null && !(await isToRepeat(transaction, name, asked, stored)))
    return stored as CommandResult<Name>;
  // A use case that was refused may have left events.
  transaction.events.take();
  const result = await useCase(transaction, command, context);
  const entry = auditEntry(request, result, context);
  if (entry !== null) await transaction.audit.add(entry);
  if (!isFailure(result)) await storeEvents(transaction, context);
  if (idempotency === null || isFailure(result)) return result;
  const short = idempotency.keyed === undefined ? null : shortAnswer(name, result);
  const refusal = await storeResult(transaction, idempotency, { result, short }, context);
  return refusal === null ? result : (refusal as CommandResult<Name>);
}

/**
 * Loads the features that have these use cases, unless they are loaded. A writer calls this before a transaction, in which
 * nothing else may run.
 */
export async function loadUseCases(names: readonly UseCaseName[]): Promise<void> {
  for (const name of names) {
    if (byName[name] !== undefined) continue;
    const feature = features.find(
      ({ useCases: own }) => own !== undefined && (name in own.locks || own.local?.includes(name) === true),
    );
    const loaded = await feature?.useCases?.load();
    Object.assign(byName, loaded?.useCases);
    Object.assign(audited, loaded?.audited);
  }
}

const audited: AuditEntries = {
  addAccount: ({ account }) => ({ act: 'account.add', subject: account.accountId, detail: account.name }),
  rollApiKey: ({ account, oldUntil }) => ({
    act: 'account.roll_key',
    subject: account.accountId,
    detail: endOfOld(oldUntil),
  }),
  addProduct: ({ product }) => ({ act: 'product.add', subject: product.productKey, detail: product.name }),
  rollProductSecret: ({ product, oldUntil }) => ({
    act: 'product.roll_secret',
    subject: product.productKey,
    detail: endOfOld(oldUntil),
  }),
  addCollection: ({ collectionId, name }) => ({
    act: 'collection.add',
    subject: collectionId,
    detail: name,
  }),
  updateProduct: (product, { leaseTerms = {} }) => ({
    act: 'product.update',
    subject: product.productKey,
    detail: productDetail(product, Object.keys(leaseTerms).length > 0),
  }),
  updateCollection: ({ collectionId, name, productKeys }) => ({
    act: 'collection.update',
    subject: collectionId,
    detail: `${name}: ${counted(productKeys.length, 'product')}`,
  }),
  createCoupon: ({ id, code }) => ({ act: 'coupon.create', subject: String(id), detail: code }),
  updateCoupon: ({ id, code }) => ({ act: 'coupon.update', subject: String(id), detail: code }),
  endCoupon: ({ id, code }) => ({ act: 'coupon.end', subject: String(id), detail: code }),
  deleteCoupon: ({ id, code }) => ({ act: 'coupon.delete', subject: String(id), detail: code }),
  addPurchase: ({ purchase, license }) => ({
    act: 'purchase.add',
    subject: purchase.purchaseId,
    detail: `product ${license.productKey}`,
  }),
  refundPurchase: ({ purchase, license }) => ({
    act: 'purchase.refund',
    subject: purchase.purchaseId,
    detail: `product ${license.productKey}`,
  }),
  queuePreload: ({ queued }) => ({
    act: 'license.preload',
    subject: 'upstream',
    detail: counted(queued, 'key'),
  }),
  voidRedemption: ({ order, couponId }) => ({
    act: 'redemption.void',
    subject: order,
    detail: `coupon ${couponId}`,
  }),
  queueVoid: ({ order, couponId }) => ({
    act: 'redemption.void',
    subject: order,
    detail: `coupon ${couponId}`,
  }),
  issueToken: ({ token }, { productKey }) => ({
    act: 'token.issue',
    subject: token.tokenId,
    detail: rightsOf({ ...token, productKey }),
  }),
  revokeToken: (token, { productKey = token.productKey }) => ({
    act: 'token.revoke',
    subject: token.tokenId,
    detail: rightsOf({ ...token, productKey }),
  }),
  rotateToken: ({ token, oldUntil }) => ({
    act: 'token.rotate',
    subject: token.tokenId,
    detail: endOfOld(oldUntil),
  }),
  decideOperation: ({ operation, was }, { decision }) => ({
    act: `outbox.${decision}`,
    subject: operation.id,
    detail: `${operation.kind}, was ${was} after ${counted(operation.attempts, 'attempt')}`,
  }),
  retryNow: () => ({ act: 'sync.now', subject: 'upstream' }),
  forgetAgent: ({ number, reach }) => ({ act: 'agent.forget', subject: String(number), detail: reach }),
  pauseSync: (_, { isPaused }) => ({ act: isPaused ? 'sync.pause' : 'sync.resume', subject: 'upstream' }),
  recordProcessAct: (_, { act, detail }) => ({ act: `process.${act}`, subject: 'process', detail }),
  restore: ({ instance, unfinished }) => ({
    act: 'store.restore',
    subject: instance,
    detail: `${counted(unfinished, 'unfinished operation')} to read back`,
  }),
};

/** `showsTerms`: the terms of leases were changed. */
function productDetail({ name, recurring, archivedAt, leaseTerms }: Product, showsTerms: boolean): string {
  const facts = [name, recurring ? 'recurring' : 'once', archivedAt === null ? 'on sale' : 'archived'];
  if (!showsTerms) return facts.join(', ');
  const { seats, holdMs, termMs, refreshMs, showsEmail } = leaseTerms;
  const [hold, term, refresh] = [holdMs, termMs, refreshMs].map((ms) => `${ms / 1000} s`);
  const seatText = seats === null ? 'any number of seats' : counted(seats, 'seat');
  const email = showsEmail ? ['with the e-mail address'] : [];
  return [...facts, seatText, `hold ${hold}, term ${term}, refresh ${refresh}`, ...email].join(', ');
}

function rightsOf({ scopes, productKey, expiresAt }: Token): string {
  const product = productKey === null ? '' : ` of product ${productKey}`;
  const end = expiresAt === null ? '' : ` until ${formatDatetime(expiresAt)}`;
  return `${scopes.join(' ')}${product}${end}`;
}

/** Null if the use case was refused, changed nothing, or is not started by a person. */
function auditEntry<Name extends UseCaseName>(
  { name, command }: WriteRequest<Name>,
  result: CommandResult<Name>,
  { now, actor }: Context,
): AuditEntry | null {
  // The compiler cannot see that a name, its command and its value belong together.
  const describe = audited[name] as
    ((value: unknown, command: CommandOf<Name>) => Audited | null) | undefined;
  if (describe === undefined || !result.ok || result.unchanged === true) return null;
  const described = describe(result.value, command);
  return described === null ? null : { at: now, actor, detail: '', ...described };
}
