import { foreignProduct, notFound, unknownAccount } from '../../domain/problem/not-found.ts';
import { reaches, type Principal, type Tenant, type TenantFilter } from '../../domain/access/principal.ts';
import type { ParameterFault } from '../../domain/problem/problem.ts';
import { knownSpelling } from '../../service/license-spelling.ts';
import type { AuthorityReader, Awaitable } from '../../service/tables.ts';
import type { App } from '../app.ts';

/** What a path can name that is of one account. */
export type Owned = 'account' | 'collection' | 'product' | 'purchase';

/** Whose something is; null: there is no such thing. */
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
  // An unknown purchase costs the same reads as another account's: the time of the answer tells nothing.
  purchase: async ({ purchases, licenses, products }, id) => {
    const purchase = await purchases.get(id);
    const license = await licenses.get(purchase?.licenseKey ?? '');
    return await products.get(license?.productKey ?? '');
  },
};

/**
 * Refuses a path that names something which does not exist, or which belongs to another account: with the same answer,
 * after the same reads. Null: the credential reaches it. The owner never changes, so this is decided before the
 * transaction. An operator's path is not looked at: the use case refuses what does not exist.
 */
export async function refuseForeignPath(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  owned: Owned,
  id: string,
): Promise<ReturnType<typeof notFound> | null> {
  if (principal.isOperator) return null;
  const owner = await owners[owned](reader, id);
  return owner !== null && reaches(principal, owner) ? null : notFound(owned);
}

/** Where a license key is looked for: an operator's in the account that has it, any other's within its credential. */
export async function tenantForLicense(
  { reader, role }: Pick<App, 'reader' | 'role'>,
  { isOperator, tenant }: Principal,
  licenseKey: string | null,
): Promise<Tenant> {
  if (!isOperator || role === 'agent' || licenseKey === null) return tenant;
  const license = await reader.licenses.get(await knownSpelling(reader, licenseKey));
  const product = license === null ? null : await reader.products.get(license.productKey);
  return product === null ? tenant : { accountId: product.accountId, productKey: null };
}

/** The fault of a parameter that names an account which the credential does not reach. */
export function accountFaults(
  { isOperator, tenant }: Principal,
  accountId: string | undefined,
): ParameterFault[] {
  if (isOperator || accountId === undefined || accountId === tenant.accountId) return [];
  return [unknownAccount];
}

/** The fault of a parameter that names an account which there is not, or which the credential does not reach. */
export async function knownAccountFaults(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  accountId: string | undefined,
): Promise<ParameterFault[]> {
  const unreached = accountFaults(principal, accountId);
  if (unreached.length > 0 || accountId === undefined) return unreached;
  return (await reader.accounts.get(accountId)) === null ? [unknownAccount] : [];
}

/** The fault of a parameter that names a product which the credential does not reach. */
export async function productFaults(
  { reader, role }: Pick<App, 'reader' | 'role'>,
  principal: Principal,
  productKey: string | undefined,
): Promise<ParameterFault[]> {
  // An agent has the products of one account only.
  if (principal.isOperator || productKey === undefined || role === 'agent') return [];
  const product = await reader.products.get(productKey);
  return product !== null && reaches(principal, product) ? [] : [foreignProduct()];
}

/** The only account whose things a credential reaches; null: any account's. */
export function onlyAccountOf({ isOperator, tenant }: Principal): string | null {
  return isOperator ? null : tenant.accountId;
}

/**
 * Whether a list of one product is empty because the product does not exist or is outside the reach of the list. The
 * owner is looked at first: the rows of another account's product would be read in vain, and the time would tell that
 * the product exists.
 */
export async function isOfNoProduct(
  { reader }: Pick<App, 'reader'>,
  { tenant, productKey }: TenantFilter & { productKey?: string | undefined },
): Promise<boolean> {
  if (tenant === undefined || productKey === undefined) return false;
  const product = await reader.products.get(productKey);
  const isReached = tenant.productKey === null || tenant.productKey === productKey;
  return product?.accountId !== tenant.accountId || !isReached;
}

/** The filter by which a list shows only what the credential reaches; `asked`: the account that the caller names. */
export function withinTenant({ isOperator, tenant }: Principal, asked?: string): TenantFilter {
  if (!isOperator) return { tenant };
  return asked === undefined ? {} : { tenant: { accountId: asked, productKey: null } };
}
