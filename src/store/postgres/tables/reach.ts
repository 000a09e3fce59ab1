import type { Reach } from '../../../domain/access/principal.ts';
import type { Names } from '../names.ts';
import type { Condition } from '../statements.ts';

/** Restricts a list to the account of a credential; undefined: to none. For lists that people read. */
export function ofAccount(reach: Reach | undefined): Condition {
  return [(place) => `account_id = ${place}`, reach?.accountId];
}

/** Restricts licenses to what a credential reaches. */
export function ofReach({ license, product }: Names, reach: Reach | undefined): Condition[] {
  const ofItsAccount: Condition = [
    (place) => `EXISTS (SELECT 1 FROM ${product} AS reached
      WHERE reached.product_key = ${license}.product_key AND reached.account_id = ${place})`,
    reach?.accountId,
  ];
  return [ofItsAccount, [(place) => `${license}.product_key = ${place}`, reach?.productKey ?? undefined]];
}
