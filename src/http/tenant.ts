import { type Principal, reaches, type Tenant, type TenantFilter } from '../domain/access/principal.ts';
import { foreignProduct, notFound, unknownAccount, type ParameterFault } from '../domain/problem/problem.ts';
import { storedLicenseKey } from '../service/pasted-keys.ts';
import type { AuthorityReader, Awaitable } from '../service/tables.ts';
import type { App } from './app.ts';
import type { Owned } from './route.ts';

/** The owner of a resource; null if the resource does not exist. */
type Owner = { accountId: string | null; productKey: string | null } | null;

const owners: Record<Owned, (reader: AuthorityReader, id: string) => Awaitable<Owner>> = {
  account: async ({ accounts }, id) => {
    const account = await accounts.get(id);
    return account === null ? null : { ...account, productKey: null };
  },
  collection: async ({ collections }, id) => {
    const collection = await collections.get(id);
    return collection === null ? null : { ...collection, productKey: null };
  },
  product: ({ products }, id) => products.get(id),
  // An unknown purchase costs the same reads as another account's purchase, so that timing reveals nothing.
  purchase: async ({ purchases, licenses, products }, id) => {
    const purchase = await purchases.get(id);
    const license = await licenses.get(purchase?.licenseKey ?? '');
    return await products.get(license?.productKey ?? '');
  },
};

/**
 * Refuses a path to a resource that does not exist or that the credential cannot access: with the same response, after
 * the same reads. Returns null if the credential can access the resource. The owner of a resource never changes, so the
 * check runs before the transaction. An operator's path is not checked: the use case refuses a missing resource.
 */
export async function checkOwner(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  owned: Owned,
  id: string,
): Promise<ReturnType<typeof notFound> | null> {
  if (principal.isOperator) return null;
  const owner = await owners[owned](reader, id);
  return owner !== null && reaches(principal, owner) ? null : notFound(owned);
}

/**
 * The tenant in which a license key is looked up. For an operator it is the account that has the key; for any other
 * credential it is the credential's own tenant.
 */
export async function tenantForLicense(
  { reader, role }: Pick<App, 'reader' | 'role'>,
  { isOperator, tenant }: Principal,
  licenseKey: string | null,
): Promise<Tenant> {
  if (!isOperator || role !== 'authority' || licenseKey === null) return tenant;
  const license = await reader.licenses.get(await storedLicenseKey(reader, licenseKey));
  const product = license === null ? null : await reader.products.get(license.productKey);
  return product === null ? tenant : { accountId: product.accountId, productKey: null };
}

/** The fault of a parameter that names an account that the credential cannot access. */
export function foreignAccountFaults(
  { isOperator, tenant }: Principal,
  accountId: string | undefined,
): ParameterFault[] {
  if (isOperator || accountId === undefined || accountId === tenant.accountId) return [];
  return [unknownAccount];
}

/** The fault of a parameter that names an account that does not exist or that the credential cannot access. */
export async function accountFaults(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  accountId: string | undefined,
): Promise<ParameterFault[]> {
  const unreached = foreignAccountFaults(principal, accountId);
  if (unreached.length > 0 || accountId === undefined) return unreached;
  return (await reader.accounts.get(accountId)) === null ? [unknownAccount] : [];
}

/** The fault of a parameter that names a product that does not exist or that the credential cannot access. */
export async function productFaults(
  { reader, role }: Pick<App, 'reader' | 'role'>,
  principal: Principal,
  productKey: string | undefined,
): Promise<ParameterFault[]> {
  // All products of an agent belong to one account. An operator can access every product.
  if (principal.isOperator || productKey === undefined || role !== 'authority') return [];
  const product = await reader.products.get(productKey);
  return product !== null && reaches(principal, product) ? [] : [foreignProduct()];
}

/** The only account that a credential can access; null: every account. */
export function accessibleAccount({ isOperator, tenant }: Principal): string | null {
  return isOperator ? null : tenant.accountId;
}

/**
 * Whether the product filter names a product that does not exist or that the tenant cannot access. Checked before the
 * list is read, so that timing does not reveal the product.
 */
export async function isUnknownProduct(
  { reader }: Pick<App, 'reader'>,
  { tenant, productKey }: TenantFilter & { productKey?: string | undefined },
): Promise<boolean> {
  if (tenant === undefined || productKey === undefined) return false;
  const product = await reader.products.get(productKey);
  const isReached = tenant.productKey === null || tenant.productKey === productKey;
  return product?.accountId !== tenant.accountId || !isReached;
}

/** Restricts a list to the records that the credential can access. `accountId`: the account that the caller names. */
export function tenantFilter({ isOperator, tenant }: Principal, accountId?: string): TenantFilter {
  if (!isOperator) return { tenant };
  return accountId === undefined ? {} : { tenant: { accountId, productKey: null } };
}
