import type { Tenant } from '../../../domain/access/principal.ts';
import type { Names } from '../names.ts';
import type { Condition } from '../statements.ts';

/** Restricts a list to the account of a tenant; undefined: no restriction. */
export function ofAccount(tenant: Tenant | undefined): Condition {
  return [(place) => `account_id = ${place}`, tenant?.accountId];
}

/** Restricts licenses to a tenant. */
export function ofTenant({ license, product }: Names, tenant: Tenant | undefined): Condition[] {
  const ofItsAccount: Condition = [
    (place) => `EXISTS (SELECT 1 FROM ${product} AS reached
      WHERE reached.product_key = ${license}.product_key AND reached.account_id = ${place})`,
    tenant?.accountId,
  ];
  return [ofItsAccount, [(place) => `${license}.product_key = ${place}`, tenant?.productKey ?? undefined]];
}
