import { z } from 'zod';
import {
  couponCodePattern,
  couponFaults,
  couponState,
  couponStates,
  couponTerms,
  maxCouponCodeLength,
  type Coupon,
  type CouponParameters,
  type CouponScope,
  type CouponTerms,
} from '../domain/checkout/coupon.ts';
import { formatDatetime } from '../domain/time.ts';
import type { RoleName } from '../domain/role.ts';
import {
  datetime,
  identifier,
  integer,
  oneOf,
  percentage,
  text,
  textMatching,
  instant,
  parameters,
  type ParameterSet,
  type ParameterSource,
} from './parameters.ts';
import { pageShape } from './page.ts';

const couponTypes: readonly CouponScope['type'][] = ['single', 'multi', 'collection'];

const couponShape = {
  id: z.int(),
  coupon_type: z.enum(couponTypes),
  percent_off: z.number().nullable(),
  amount_off: z.int().nullable(),
  code: z.string(),
  start_date: instant.nullable(),
  end_date: instant.nullable(),
  product_key: z.string().nullable(),
  collection_id: z.string().nullable(),
  minimum_purchase_amount: z.int().nullable(),
  usage_limit: z.int().nullable(),
  notes: z.string().nullable(),
};

/** The coupon object of specification 2.1: all twelve fields, null where there is no value. */
export const couponObject = z.object(couponShape).meta({ id: 'Coupon' });

export type CouponObject = z.infer<typeof couponObject>;

export const couponList = z.object({ coupons: z.array(couponObject) }).meta({ id: 'CouponList' });

/** The maximum number of orders that are shown with a coupon. */
export const shownOrders = 100;

const countedShape = {
  ...couponShape,
  redemptions: z.int(),
  state: z.enum(couponStates),
  scope: z.literal('this_agent').optional(),
};

/** A coupon with the number of its redemptions and its state; only agents send `scope`. */
export const countedCouponObject = z.object(countedShape).meta({ id: 'CountedCoupon' });

export type CountedCouponObject = z.infer<typeof countedCouponObject>;

export const countedCouponList = z
  .object({ coupons: z.array(countedCouponObject) })
  .meta({ id: 'CountedCouponList' });

/** A counted coupon with its last orders: the newest first, at most `shownOrders`. */
export const redeemedCouponObject = z
  .object({ ...countedShape, orders: z.array(z.string()) })
  .meta({ id: 'RedeemedCoupon' });

/** `GET /agent/v1/coupons`. */
export const countedCouponQuery = parameters({
  code: identifier.optional(),
  product_key: identifier.optional(),
  state: oneOf(couponStates).optional(),
  ...pageShape('coupons'),
});

/** An agent counts only its own redemptions, and says so in `scope`. */
export function serializeCounted(
  coupon: Coupon,
  redemptions: number,
  { role, now }: { role: RoleName; now: () => number },
): CountedCouponObject {
  return {
    ...serializeCoupon(coupon),
    redemptions,
    state: couponState(coupon, redemptions, now()),
    ...(role === 'agent' && { scope: 'this_agent' as const }),
  };
}

export function serializeCoupon(coupon: Coupon): CouponObject {
  const { scope, discount } = coupon;
  return {
    id: coupon.id,
    coupon_type: scope.type,
    percent_off: discount.type === 'percent' ? discount.percentOff : null,
    amount_off: discount.type === 'amount' ? discount.amountOff : null,
    code: coupon.code,
    start_date: coupon.startAt === null ? null : formatDatetime(coupon.startAt),
    end_date: coupon.endAt === null ? null : formatDatetime(coupon.endAt),
    product_key: scope.type === 'single' ? scope.productKey : null,
    collection_id: scope.type === 'collection' ? scope.collectionId : null,
    minimum_purchase_amount: coupon.minimumPurchaseAmount,
    usage_limit: coupon.usageLimit,
    notes: coupon.notes,
  };
}

/** A coupon, whether it is valid now for any cart, and how often it was redeemed. */
export const verifiedCouponObject = z
  .object({
    ...couponShape,
    valid: z.boolean(),
    usage: z.int(),
  })
  .meta({ id: 'VerifiedCoupon' });

export type VerifiedCouponObject = z.infer<typeof verifiedCouponObject>;

export function serializeVerifiedCoupon(
  coupon: Coupon,
  { isValid, usage }: { isValid: boolean; usage: number },
): VerifiedCouponObject {
  return { ...serializeCoupon(coupon), valid: isValid, usage };
}

/** `GET /api/v1/coupons/verify`; white space around a code is dropped, as in a cart. */
export const couponCodeParameters = parameters({
  code: identifier.transform((input) => input.trim()),
});

/** Reads the id of a coupon in a path; null if no coupon can have this id. */
export function couponId(input: string): number | null {
  const number = /^-?\d{1,16}$/.test(input) ? Number(input) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

/** The limit for a body with a coupon, instead of `limits.body_bytes`: notes take up to 12 bytes a character. */
export const couponBytes = 262_144;

export const couponCode = textMatching(
  couponCodePattern,
  maxCouponCodeLength,
  `must have 1 to ${maxCouponCodeLength} characters, no white space and no control characters`,
);

const absent = { type: 'null' };
const present = { type: 'string', minLength: 1 };
const discounts = [
  { percent_off: { type: 'number' }, amount_off: absent },
  { percent_off: absent, amount_off: { type: 'integer' } },
];
const scopes = [
  { coupon_type: { const: 'single' }, product_key: present, collection_id: absent },
  { coupon_type: { const: 'multi' }, product_key: absent, collection_id: absent },
  { coupon_type: { const: 'collection' }, product_key: absent, collection_id: present },
];

/** Requires one of several shapes, with all members that are not `absent`. */
function oneShape(shapes: readonly Readonly<Record<string, object>>[]): object {
  const alternatives = shapes.map((properties) => ({
    properties,
    required: Object.keys(properties).filter((name) => properties[name] !== absent),
  }));
  return { anyOf: alternatives };
}

/**
 * Adds to the JSON Schema of a coupon's creation which members exclude or require each other, as `couponFaults` checks,
 * except the order of the dates. Client generators ignore `dependentSchemas`: they would make a class of each branch.
 */
export function describeConditions({ jsonSchema }: { jsonSchema: object }): void {
  const allOf = [oneShape(discounts), oneShape(scopes)];
  Object.assign(jsonSchema, { dependentSchemas: { coupon_type: { allOf } } });
}

/**
 * Declares the parameters of a coupon's creation (specification 4.1); `overrides` replaces the types of some. Reports
 * all errors at once. If the scope is valid, the caller gets it in spite of other errors, and can check it, too.
 * Unknown parameters are refused: a misspelt parameter must not make a wrong coupon.
 */
export function couponCreationWith(overrides: {
  code?: z.ZodType<string>;
  start_date?: z.ZodType<number>;
  end_date?: z.ZodType<number>;
}): ParameterSet<CouponTerms> {
  const creation = parameters(
    {
      coupon_type: oneOf(couponTypes),
      percent_off: percentage.optional(),
      amount_off: integer(1).optional(),
      code: overrides.code ?? couponCode,
      start_date: (overrides.start_date ?? datetime).optional(),
      end_date: (overrides.end_date ?? datetime).optional(),
      product_key: identifier.optional(),
      collection_id: identifier.optional(),
      minimum_purchase_amount: integer(1).optional(),
      usage_limit: integer(1).optional(),
      notes: text(16_384).optional(),
    },
    { unknown: 'refused' },
  );
  return {
    schema: creation.schema,
    read(raw) {
      const reading = creation.read(raw);
      const between = couponFaults(sentParameters(raw, reading.values));
      if (reading.ok && between.length === 0) return { ok: true, values: couponTerms(reading.values) };
      const scope = readableScope(reading.values);
      return {
        ok: false,
        values: scope === null ? {} : { scope },
        faults: reading.ok ? between : [...reading.faults, ...between],
      };
    },
  };
}

const creation = couponCreationWith({});

/** The parameters of a coupon's creation. */
export const couponCreation: ParameterSet<CouponTerms> = {
  ...creation,
  schema: creation.schema.meta({ id: 'CouponTerms', override: describeConditions }),
};

/** Fills in any value for a malformed discount or scope, so that it is not reported as missing as well. */
function sentParameters(raw: ParameterSource, values: Partial<CouponParameters>): CouponParameters {
  return {
    ...values,
    percentOff: values.percentOff ?? (raw.get('percent_off') !== undefined ? 1 : undefined),
    amountOff: values.amountOff ?? (raw.get('amount_off') !== undefined ? 1 : undefined),
    productKey: values.productKey ?? (raw.get('product_key') !== undefined ? '?' : undefined),
    collectionId: values.collectionId ?? (raw.get('collection_id') !== undefined ? '?' : undefined),
  };
}

function readableScope({
  couponType,
  productKey,
  collectionId,
}: Partial<CouponParameters>): CouponScope | null {
  if (couponType === 'single' && productKey !== undefined) return { type: couponType, productKey };
  if (couponType === 'collection' && collectionId !== undefined) return { type: couponType, collectionId };
  return null;
}
