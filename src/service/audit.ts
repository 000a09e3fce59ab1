import { formatDatetime } from '../domain/time.ts';
import type { Result } from '../domain/problem/problem.ts';
import type { CommandOf, CommandResult, UseCaseName, UseCases, WriteRequest } from './writer.ts';
import type { Context } from './ports.ts';
import type { AuditEntry } from './tables.ts';
import type { Product } from '../domain/catalogue.ts';
import { maskedKey, type License } from '../domain/license.ts';
import type { Token } from '../domain/access/principal.ts';
import { counted } from '../domain/text.ts';

/** An audit entry never contains a secret or a whole license key. */
export type Audited = { act: string; subject: string; detail?: string };

type ValueOf<Name extends UseCaseName> = CommandResult<Name> extends Result<infer Value> ? Value : never;

/** The audit entry of each use case that a person starts; null: no person has started it. */
export type AuditEntries = {
  [Name in UseCaseName]?: (value: ValueOf<Name>, command: CommandOf<Name>) => Audited | null;
};

/** The use cases of a feature, and their audit entries. */
export type FeatureUseCases = { useCases: Partial<UseCases>; audited: AuditEntries };

/** Until when a replaced secret stays valid. */
export function endOfOld(until: number | null): string {
  return until === null ? '' : `the old one until ${formatDatetime(until)}`;
}

/** Those of features are added when their use cases are loaded. */
export const audited: AuditEntries = {
  addAccount: ({ account }) => ({ act: 'account.add', subject: account.accountId, detail: account.name }),
  rotateApiKey: ({ account, oldUntil }) => ({
    act: 'account.rotate_key',
    subject: account.accountId,
    detail: endOfOld(oldUntil),
  }),
  addProduct: ({ product }) => ({ act: 'product.add', subject: product.productKey, detail: product.name }),
  rotateProductSecret: ({ product, oldUntil }) => ({
    act: 'product.rotate_secret',
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
  updateLicense: (license) => ({ act: 'license.update', ...termsOf(license) }),
  renewLicense: (license) => ({ act: 'license.renew', ...termsOf(license) }),
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

function termsOf({
  licenseKey,
  productKey,
  expiresAt = null,
  usesLimit = null,
  terms,
}: License): Omit<Audited, 'act'> {
  const facts = [
    `product ${productKey}`,
    expiresAt === null ? 'without an end' : `until ${formatDatetime(expiresAt)}`,
    ...(usesLimit === null ? [] : [`at most ${counted(usesLimit, 'use')}`]),
    ...(terms?.entitlements ?? []),
    ...(terms?.seats === undefined ? [] : [counted(terms.seats, 'seat')]),
  ];
  return { subject: maskedKey(licenseKey), detail: facts.join(', ') };
}

function rightsOf({ scopes, productKey, expiresAt }: Token): string {
  const product = productKey === null ? '' : ` of product ${productKey}`;
  const end = expiresAt === null ? '' : ` until ${formatDatetime(expiresAt)}`;
  return `${scopes.join(' ')}${product}${end}`;
}

/** Null if the use case was refused, changed nothing, or is not started by a person. */
export function auditEntry<Name extends UseCaseName>(
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
