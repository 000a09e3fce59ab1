/* The use cases of the core that write, by name. The writer runs only these and those of features. */
export { pruneOldCredentials, storeTokenUses } from './access/credential.ts';
export { pruneHistory, recordProcessAct, storeFinalResponse, pruneIdempotency } from './access/records.ts';
export { issueToken, revokeToken, rotateToken } from './access/token.ts';
export { forgetCoupon } from './agent/mirror.ts';
export { mirrorCoupons } from './agent/mirror-coupons.ts';
export { hastenRefresh, touchSnapshot, queuePreload, recordPreload } from './agent/snapshot.ts';
export {
  addAccount,
  rollApiKey,
  addCollection,
  updateCollection,
  addProduct,
  rollProductSecret,
  updateProduct,
} from './authority/catalogue.ts';
export { createCoupon, deleteCoupon, endCoupon, updateCoupon } from './authority/coupon.ts';
export { indexLicenses } from './authority/search.ts';
export { changeLicense, addPurchase, refundPurchase } from './authority/license.ts';
export { redeemCoupon, redeemMirroredCoupon, voidRedemption } from './checkout.ts';
export { recordUpstreamState } from './events.ts';
export { markTime } from './lifecycle/current-run.ts';
export { correctDates } from './lifecycle/corrected-dates.ts';
export { restore, startAgent, startAuthority, startHolder } from './lifecycle/start.ts';
export { queueCoupon, recordCouponResponse, recordCouponListing } from './outbox/coupon/creation.ts';
export { decideOperation } from './outbox/decision.ts';
export { queueChange } from './outbox/license-change.ts';
export { planStep } from './outbox/queue.ts';
export { pruneOperations } from './outbox/prune.ts';
export { resumeDelivered } from './outbox/resume.ts';
export { endOutage, postpone, recordResponse } from './outbox/record-response.ts';
export { confirmFollowed, recordChanges } from '../features/following/service/followed-changes.ts';
export { makeFollowerId } from '../features/following/service/follower-id.ts';
export { answerCoupon } from './outbox/coupon/keyed.ts';
export { recordRead } from './outbox/record-read.ts';
export {
  answerRedemption,
  queueRedemption,
  queueVoid,
  recordRedemptionResponse,
} from './outbox/coupon/redemption.ts';
export { storeLastSuccess, storeRetryAfter, pauseSync, retryNow } from './outbox/queue.ts';
export { followFromBelow } from '../features/following/service/chain.ts';
export { followKeys, forgetAgent, pruneSync } from '../features/following/service/follow.ts';
export { bindUpstream, nameUpstream } from './outbox/upstream-state.ts';
