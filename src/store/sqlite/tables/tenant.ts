/** Restricts a list to an account, the first parameter; null: no restriction. */
export const ofAccount = '(?1 IS NULL OR account_id = ?1)';

/** Whether the product of a license belongs to an account; `account`: the number of the parameter. */
export function soldBy(account: number): string {
  return `EXISTS (SELECT 1 FROM product WHERE product.product_key = license.product_key
    AND product.account_id = ?${account})`;
}

/** Restricts licenses to a tenant; `account`, `product`: the numbers of the parameters. */
export function ofTenant(account: number, product: number): string {
  return `(?${account} IS NULL OR ${soldBy(account)}) AND (?${product} IS NULL OR product_key = ?${product})`;
}
