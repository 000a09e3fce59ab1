/*
 * Every use case that writes, by the name under which a command asks for it. A use case that is not listed
 * here cannot be written by; there is no other list.
 */
export { issueToken, revokeToken } from './access/token.ts';
export { keepAnswer, pruneIdempotency } from './access/idempotency.ts';
export { touchObservation } from './agent/observation.ts';
export { forgetCoupon, mirrorCoupons } from './agent/mirror.ts';
export { addAccount, rollApiKey } from './authority/account.ts';
export { addCollection } from './authority/collection.ts';
export { createCoupon } from './authority/coupon.ts';
export { changeLicense } from './authority/license.ts';
export { addProduct, rollProductSecret } from './authority/product.ts';
export { addPurchase, refundPurchase } from './authority/purchase.ts';
export { markTime } from './lifecycle/clock-mark.ts';
export { restore } from './lifecycle/restore.ts';
export { startAgent, startAuthority } from './lifecycle/start.ts';
export { decideOperation } from './outbox/control/decide-operation.ts';
export { pauseSync, retryNow } from './outbox/control/pause-sync.ts';
export { planStep } from './outbox/delivery/plan-step.ts';
export { postpone } from './outbox/delivery/postpone.ts';
export { pruneOperations } from './outbox/prune.ts';
export { queueCoupon } from './outbox/queue/coupon.ts';
export { queueChange } from './outbox/queue/license-change.ts';
export { endOutage, recordAnswer } from './outbox/delivery/record-answer.ts';
export { recordCouponAnswer, recordCouponListing } from './outbox/delivery/record-coupon.ts';
export { bindUpstream } from './outbox/control/upstream-binding.ts';
export { recordRead } from './outbox/settlement/record-read.ts';
export { keepRetryAfter } from './outbox/control/retry-after.ts';
