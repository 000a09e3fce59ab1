import { refuse, type ParameterFault } from './problem.ts';

/**
 * A caller must not learn that a record of another account exists, so the error is the same for a foreign and a missing
 * record.
 */
const refusals = {
  account: ['account_not_found', 'There is no such account.'],
  collection: ['collection_not_found', 'There is no such collection.'],
  coupon: ['coupon_not_found', 'There is no coupon with this id.'],
  product: ['product_not_found', 'There is no such product.'],
  purchase: ['purchase_not_found', 'There is no such purchase.'],
  token: ['token_not_found', 'There is no token with this id.'],
} as const;

/** Refuses a request that names a missing record. */
export function notFound(what: keyof typeof refusals): ReturnType<typeof refuse> {
  const [code, detail] = refusals[what];
  return refuse(code, detail);
}

/** The fault of a parameter that names a missing account. */
export const unknownAccount: ParameterFault = faultOf('account_id', 'account');

/** The fault of a parameter that names a missing product. */
export const unknownProduct: ParameterFault = faultOf('product_key', 'product');

function faultOf(parameter: string, what: keyof typeof refusals): ParameterFault {
  const [code, detail] = refusals[what];
  return { parameter, code, detail };
}

/** The fault of a parameter that names a product of another account, or a missing product. */
export function foreignProduct(parameter = 'product_key'): ParameterFault {
  return { parameter, code: refusals.product[0], detail: 'The account has no such product.' };
}
