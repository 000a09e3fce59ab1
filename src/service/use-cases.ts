import { addAccount, rollApiKey } from './authority/account.ts';
import { addCollection } from './authority/collection.ts';
import { recordAct } from './access/audit.ts';
import { createCoupon } from './authority/coupon.ts';
import { changeLicense } from './authority/license.ts';
import { decideOperation } from './outbox/decide.ts';
import { keepAnswer, runOnce } from './access/idempotency.ts';
import { addProduct, rollProductSecret } from './authority/product.ts';
import { markTime } from './lifecycle/clock-mark.ts';
import { confirmCoupon, forgetCoupon, mirrorCoupons } from './agent/mirror.ts';
import { touchObservation } from './agent/observation.ts';
import { planStep } from './outbox/plan.ts';
import type { WriteOptions, Context } from './ports.ts';
import { postpone } from './outbox/postpone.ts';
import { prune } from './lifecycle/prune.ts';
import { addPurchase, refundPurchase } from './authority/purchase.ts';
import { queueChange } from './outbox/queue-license-change.ts';
import { queueCoupon } from './outbox/queue-coupon.ts';
import { endOutage, recordAnswer } from './outbox/record-answer.ts';
import { recordCouponAnswer, recordCouponListing } from './outbox/record-coupon.ts';
import { recordRead } from './outbox/record-read.ts';
import { restore } from './lifecycle/restore.ts';
import { start } from './lifecycle/start.ts';
import { hurry, pauseSync } from './outbox/pause.ts';
import type { Transaction } from './tables.ts';
import { issueToken, revokeToken } from './access/token.ts';

/** Every use case that writes, by the name under which a command asks for it. */
export type UseCases = {
  issueToken: typeof issueToken;
  revokeToken: typeof revokeToken;
  restore: typeof restore;
  pauseSync: typeof pauseSync;
  hurry: typeof hurry;
  decideOperation: typeof decideOperation;
  recordCouponListing: typeof recordCouponListing;
  recordCouponAnswer: typeof recordCouponAnswer;
  queueCoupon: typeof queueCoupon;
  markTime: typeof markTime;
  mirrorCoupons: typeof mirrorCoupons;
  forgetCoupon: typeof forgetCoupon;
  confirmCoupon: typeof confirmCoupon;
  addAccount: typeof addAccount;
  addCollection: typeof addCollection;
  addProduct: typeof addProduct;
  addPurchase: typeof addPurchase;
  changeLicense: typeof changeLicense;
  createCoupon: typeof createCoupon;
  endOutage: typeof endOutage;
  keepAnswer: typeof keepAnswer;
  touchObservation: typeof touchObservation;
  planStep: typeof planStep;
  postpone: typeof postpone;
  prune: typeof prune;
  queueChange: typeof queueChange;
  recordAnswer: typeof recordAnswer;
  recordRead: typeof recordRead;
  refundPurchase: typeof refundPurchase;
  rollApiKey: typeof rollApiKey;
  rollProductSecret: typeof rollProductSecret;
  start: typeof start;
};
export type UseCaseName = keyof UseCases;
export type CommandOf<Name extends UseCaseName> = Parameters<UseCases[Name]>[1];
export type CommandResult<Name extends UseCaseName> = ReturnType<UseCases[Name]>;

const table: UseCases = {
  issueToken,
  revokeToken,
  restore,
  pauseSync,
  hurry,
  decideOperation,
  recordCouponListing,
  recordCouponAnswer,
  queueCoupon,
  markTime,
  mirrorCoupons,
  forgetCoupon,
  confirmCoupon,
  addAccount,
  addCollection,
  addProduct,
  addPurchase,
  changeLicense,
  createCoupon,
  endOutage,
  keepAnswer,
  touchObservation,
  planStep,
  postpone,
  prune,
  queueChange,
  recordAnswer,
  recordRead,
  refundPurchase,
  rollApiKey,
  rollProductSecret,
  start,
};

/**
 * Runs one use case: synchronous, whole, in the transaction it is given; under its idempotency key, once.
 * What it did is put on record there too, if it is an act of a person.
 */
export function runUseCase<Name extends UseCaseName>(
  transaction: Transaction,
  request: WriteRequest<Name>,
  context: Context,
): CommandResult<Name> {
  const { name, command, writeOptions } = request;
  // A name and its command belong together, which the compiler cannot follow through the table.
  const useCase = table[name] as (
    transaction: Transaction,
    command: CommandOf<Name>,
    context: Context,
  ) => CommandResult<Name>;
  const run = (): CommandResult<Name> => {
    const result = useCase(transaction, command, context);
    recordAct(transaction, request, result, context);
    return result;
  };
  const { idempotency } = writeOptions;
  if (idempotency === undefined || idempotency === null) return run();
  return runOnce(transaction, idempotency, context, run) as CommandResult<Name>;
}

/** A write as it travels to the writer's thread. */
export type WriteRequest<Name extends UseCaseName = UseCaseName> = {
  name: Name;
  command: CommandOf<Name>;
  writeOptions: Partial<WriteOptions>;
};
