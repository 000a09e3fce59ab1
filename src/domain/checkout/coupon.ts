import type { ParameterFault } from '../problem/problem.ts';
import { plainText } from '../text.ts';

/** What a coupon applies to (`coupon_type` on the wire). */
export type CouponScope =
  { type: 'single'; productKey: string } | { type: 'multi' } | { type: 'collection'; collectionId: string };

/** Either a percentage (> 0, ≤ 100) or a fixed amount in cents. */
export type CouponDiscount = { type: 'percent'; percentOff: number } | { type: 'amount'; amountOff: number };

/** A coupon without its id (specification 2.1). Times are epoch ms, amounts are cents. */
export type CouponTerms = {
  scope: CouponScope;
  discount: CouponDiscount;
  code: string;
  startAt: number | null;
  endAt: number | null;
  minimumPurchaseAmount: number | null;
  usageLimit: number | null;
  notes: string | null;
};

export type Coupon = CouponTerms & { id: number };

export const couponStates = ['scheduled', 'active', 'used_up', 'ended'] as const;

export type CouponState = (typeof couponStates)[number];

/** The state of a coupon at an instant (epoch ms); `redemptions`: how often it has been redeemed. */
export function couponState(
  { startAt, endAt, usageLimit }: CouponTerms,
  redemptions: number,
  now: number,
): CouponState {
  if (endAt !== null && now > endAt) return 'ended';
  if (usageLimit !== null && redemptions >= usageLimit) return 'used_up';
  return startAt !== null && now < startAt ? 'scheduled' : 'active';
}

export type CouponFilter = {
  /** Compared without case. */
  code?: string | undefined;
  productKey?: string | undefined;
  /** The state at an instant (epoch ms). */
  state?: { is: CouponState; at: number } | undefined;
};

export const maxCouponCodeLength = 64;
export const couponCodePattern: RegExp = /^[^\s\p{Cc}]+$/u;

/** Codes are compared in this form, which ignores case. */
export function foldCouponCode(code: string): string {
  return code.normalize('NFC').toLowerCase();
}

/** The code that was most likely issued, from a pasted code: see `plainText`. */
export function plainCouponCode(code: string): string {
  return plainText(code).trim();
}

/** Whether a coupon may be created with a code. Codes that look alike count as the same code. */
export function isPlainCouponCode(code: string): boolean {
  return plainCouponCode(code) === code.normalize('NFC');
}

/** Why no coupon is created with a code that is not plain. */
export const malformedCode = {
  parameter: 'code',
  code: 'malformed',
  detail: 'code must not contain invisible characters, full-width letters or typographic dashes.',
} as const;

/** The parsed parameters for creating a coupon; undefined if not sent. */
export type CouponParameters = {
  couponType?: CouponScope['type'] | undefined;
  percentOff?: number | undefined;
  amountOff?: number | undefined;
  code?: string | undefined;
  startDate?: number | undefined;
  endDate?: number | undefined;
  productKey?: string | undefined;
  collectionId?: string | undefined;
  minimumPurchaseAmount?: number | undefined;
  usageLimit?: number | undefined;
  notes?: string | undefined;
};

function discountFaults({ percentOff, amountOff }: CouponParameters): ParameterFault[] {
  if (percentOff === undefined && amountOff === undefined) {
    return [fault('percent_off', 'required', 'Either percent_off or amount_off is required.')];
  }
  if (percentOff !== undefined && amountOff !== undefined) {
    return [fault('amount_off', 'excluded', 'A coupon has either percent_off or amount_off, not both.')];
  }
  return [];
}

function scopeFaults({ couponType, productKey, collectionId }: CouponParameters): ParameterFault[] {
  if (couponType === undefined) return [];
  const faults: ParameterFault[] = [];
  if (couponType === 'single' && productKey === undefined) {
    faults.push(fault('product_key', 'required', 'product_key is required when coupon_type is single.'));
  }
  if (couponType !== 'single' && productKey !== undefined) {
    faults.push(fault('product_key', 'excluded', `product_key does not go with coupon_type ${couponType}.`));
  }
  if (couponType === 'collection' && collectionId === undefined) {
    const detail = 'collection_id is required when coupon_type is collection.';
    faults.push(fault('collection_id', 'required', detail));
  }
  if (couponType !== 'collection' && collectionId !== undefined) {
    const detail = `collection_id does not go with coupon_type ${couponType}.`;
    faults.push(fault('collection_id', 'excluded', detail));
  }
  return faults;
}

/** Compares whole seconds because responses carry seconds: a value that we returned must be accepted when sent back. */
export function endsAfter(startAt: number, endAt: number): boolean {
  return Math.floor(endAt / 1000) > Math.floor(startAt / 1000);
}

function dateFaults({ startDate, endDate }: CouponParameters): ParameterFault[] {
  if (startDate === undefined || endDate === undefined || endsAfter(startDate, endDate)) return [];
  return [fault('end_date', 'not_after_start', 'end_date must be after start_date.')];
}

/** The faults of combinations of parameters (specification 2.1 and 4.1). Parsing finds the faults of single parameters. */
export function couponFaults(parameters: CouponParameters): ParameterFault[] {
  return [...discountFaults(parameters), ...scopeFaults(parameters), ...dateFaults(parameters)];
}

/** The terms from valid parameters; throws if `couponFaults` would find a fault. */
export function couponTerms(parameters: CouponParameters & { code: string }): CouponTerms {
  return {
    scope: couponScope(parameters),
    discount: couponDiscount(parameters),
    code: parameters.code,
    startAt: parameters.startDate ?? null,
    endAt: parameters.endDate ?? null,
    minimumPurchaseAmount: parameters.minimumPurchaseAmount ?? null,
    usageLimit: parameters.usageLimit ?? null,
    notes: parameters.notes ?? null,
  };
}

function couponScope({ couponType, productKey, collectionId }: CouponParameters): CouponScope {
  if (couponType === 'multi') return { type: 'multi' };
  if (couponType === 'single' && productKey !== undefined) return { type: 'single', productKey };
  if (couponType === 'collection' && collectionId !== undefined) return { type: 'collection', collectionId };
  throw new Error('coupon parameters do not name a scope');
}

function couponDiscount({ percentOff, amountOff }: CouponParameters): CouponDiscount {
  if (percentOff !== undefined) return { type: 'percent', percentOff };
  if (amountOff !== undefined) return { type: 'amount', amountOff };
  throw new Error('coupon parameters name no discount');
}

function fault(parameter: string, code: string, detail: string): ParameterFault {
  return { parameter, code, detail };
}

/** Why a coupon is not created. */
export const codeTaken = {
  code: 'coupon_code_taken',
  detail: 'The account already has a coupon with this code.',
} as const;
