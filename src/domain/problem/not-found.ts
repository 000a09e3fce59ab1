import { refuse, type ParameterFault } from './problem.ts';

/**
 * What a request can name. Whoever names something of another account must not learn that it exists, so that
 * there is one refusal for both.
 */
const refusals = {
  account: ['account_not_found', 'There is no such account.'],
  collection: ['collection_not_found', 'There is no such collection.'],
  coupon: ['coupon_not_found', 'There is no coupon with this id.'],
  product: ['product_not_found', 'There is no such product.'],
  purchase: ['purchase_not_found', 'There is no such purchase.'],
  token: ['token_not_found', 'There is no token with this id.'],
} as const;

/** Refuses a request that names something which is not there. */
export function notFound(what: keyof typeof refusals): ReturnType<typeof refuse> {
  const [code, detail] = refusals[what];
  return refuse(code, detail);
}

/** The fault of a parameter that names an account which is not there. */
export const unknownAccount: ParameterFault = faultOf('account_id', 'account');

/** The fault of a parameter that names a product which is not there. */
export const unknownProduct: ParameterFault = faultOf('product_key', 'product');

function faultOf(parameter: string, what: keyof typeof refusals): ParameterFault {
  const [code, detail] = refusals[what];
  return { parameter, code, detail };
}

/** The fault of a parameter that names a product which the account in question does not have. */
export function foreignProduct(parameter = 'product_key'): ParameterFault {
  return { parameter, code: refusals.product[0], detail: 'The account has no such product.' };
}
