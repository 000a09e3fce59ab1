/* The use cases of the core that write, by name. The writer runs only these and those of features. */
export { pruneOldCredentials, storeTokenUses } from './access/credential.ts';
export { pruneHistory } from './history.ts';
export { storeFinalResponse, pruneIdempotency } from './idempotency.ts';
export { issueToken, revokeToken, rotateToken } from './access/token.ts';
export { beginActivation, endActivationAttempt, pruneActivations } from './agent/activation.ts';
export { forgetCoupon } from './agent/mirror.ts';
export { mirrorCoupons } from './agent/mirror-coupons.ts';
export {
  confirmFollowed,
  hastenRefresh,
  touchSnapshot,
  queuePreload,
  recordPreload,
} from './agent/snapshot.ts';
export {
  addAccount,
  rotateApiKey,
  addCollection,
  updateCollection,
  addProduct,
  rotateProductSecret,
  updateProduct,
} from './authority/catalogue.ts';
export { createCoupon, deleteCoupon, endCoupon, updateCoupon } from './authority/coupon.ts';
export { spreadGrace } from './authority/grace.ts';
export { indexLicenses } from './authority/search.ts';
export { changeLicense, addPurchase, refundPurchase } from './authority/license.ts';
export { recordLicenseEnds, renewLicense, updateLicense } from './authority/terms.ts';
export { redeemCoupon, redeemMirroredCoupon, voidRedemption } from './checkout.ts';
export { recordUpstreamState } from './events.ts';
export { markTime } from './lifecycle/time-mark.ts';
export { correctDates } from './lifecycle/corrected-dates.ts';
export { recordProcessAct, restore, startAgent, startAuthority, startHolder } from './lifecycle/start.ts';
export { queueCoupon, recordCouponResponse, recordCouponListing } from './outbox/coupon/creation.ts';
export { decideOperation } from './outbox/decision.ts';
export { queueChange } from './outbox/license-change.ts';
export { planStep } from './outbox/plan-step.ts';
export { pruneOperations } from './outbox/prune.ts';
export { resumeDelivered } from './outbox/upstream/lost-operations.ts';
export { postpone, recordResponse } from './outbox/record-response.ts';
export { answerCoupon } from './outbox/coupon/latchkey-creation.ts';
export { recordRead } from './outbox/record-read.ts';
export {
  answerRedemption,
  queueRedemption,
  queueVoid,
  recordRedemptionResponse,
} from './outbox/coupon/redemption.ts';
export {
  endOutage,
  storeLastSuccess,
  storeRetryAfter,
  pauseSync,
  retryNow,
} from './outbox/upstream/waits.ts';
export { bindUpstream, nameUpstream } from './outbox/upstream/change.ts';
