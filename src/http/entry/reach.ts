import { reaches, type Principal, type ReachFilter } from '../../domain/principal.ts';
import { refuse, type ParameterFault } from '../../domain/problem.ts';
import type { ProblemCode } from '../../domain/problem-table.ts';
import type { AuthorityReader, Awaitable } from '../../service/tables.ts';
import type { App } from '../app.ts';

/** What a path can name that is of one account. */
export type Owned = 'account' | 'collection' | 'product' | 'purchase' | 'token';

/** Whose something is; null: there is no such thing. */
type Owner = { accountId: string | null; productKey: string | null } | null;

type Kind = {
  find(reader: AuthorityReader, id: string): Awaitable<Owner>;
  /** What the use case refuses with when there is no such thing. */
  missing: readonly [code: ProblemCode, detail: string];
};

const kinds: Record<Owned, Kind> = {
  account: {
    find: async ({ accounts }, id) => {
      const account = await accounts.get(id);
      return account === null ? null : { ...account, productKey: null };
    },
    missing: ['account_not_found', 'There is no such account.'],
  },
  collection: {
    find: async ({ collections }, id) => {
      const collection = await collections.get(id);
      return collection === null ? null : { ...collection, productKey: null };
    },
    missing: ['collection_not_found', 'There is no such collection.'],
  },
  product: {
    find: ({ products }, id) => products.get(id),
    missing: ['product_not_found', 'There is no such product.'],
  },
  purchase: {
    find: async ({ purchases, licenses, products }, id) => {
      const purchase = await purchases.get(id);
      const license = purchase === null ? null : await licenses.get(purchase.licenseKey);
      return license === null ? null : await products.get(license.productKey);
    },
    missing: ['purchase_not_found', 'There is no such purchase.'],
  },
  token: {
    find: ({ tokens }, id) => tokens.get(id),
    missing: ['token_not_found', 'There is no token with this id.'],
  },
};

/**
 * Refuses a path that names something of another account, as if it did not exist; null where there is nothing to
 * refuse. Whose something is never changes, so that this can be decided before the transaction.
 */
export async function reachRefusal(
  { reader }: Pick<App, 'reader'>,
  principal: Principal,
  owned: Owned,
  id: string,
): Promise<ReturnType<typeof refuse> | null> {
  if (principal.isOperator) return null;
  const kind = kinds[owned];
  const owner = await kind.find(reader, id);
  return owner === null || reaches(principal, owner) ? null : refuse(...kind.missing);
}

/** The fault of a parameter that names an account which the credential does not reach. */
export function accountFaults(
  { isOperator, reach }: Principal,
  accountId: string | undefined,
): ParameterFault[] {
  if (isOperator || accountId === undefined || accountId === reach.accountId) return [];
  return [{ parameter: 'account_id', code: 'account_not_found', detail: 'There is no such account.' }];
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
  if (product !== null && reaches(principal, product)) return [];
  const detail = 'The account has no such product.';
  return [{ parameter: 'product_key', code: 'product_not_found', detail }];
}

/** The only account whose things a credential reaches; null: any account's. */
export function onlyAccountOf({ isOperator, reach }: Principal): string | null {
  return isOperator ? null : reach.accountId;
}

/** The filter by which a list shows only what the credential reaches; `asked`: the account that the caller names. */
export function withinReach({ isOperator, reach }: Principal, asked?: string): ReachFilter {
  if (!isOperator) return { reach };
  return asked === undefined ? {} : { reach: { accountId: asked, productKey: null } };
}
