/** Restricts a list to an account, the first parameter; null: to none. For lists that people read. */
export const ofAccount = '(?1 IS NULL OR account_id = ?1)';

/** Whether the product of a license is of an account, the parameter at this place. */
export function soldBy(account: number): string {
  return `EXISTS (SELECT 1 FROM product WHERE product.product_key = license.product_key
    AND product.account_id = ?${account})`;
}

/** Restricts licenses to what a credential reaches: an account and a product, the parameters at these places. */
export function ofTenant(account: number, product: number): string {
  return `(?${account} IS NULL OR ${soldBy(account)}) AND (?${product} IS NULL OR product_key = ?${product})`;
}
