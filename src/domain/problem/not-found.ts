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
export const unknownAccount: ParameterFault = {
  parameter: 'account_id',
  code: refusals.account[0],
  detail: refusals.account[1],
};
