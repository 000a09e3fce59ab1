/** Whose records a credential reaches: all of an account's products, or one of them (on an agent: its id). */
export type Tenant = { accountId: string; productKey: string | null };

/** Restricts a list to what a credential reaches; undefined: to nothing. */
export type TenantFilter = { tenant?: Tenant | undefined };

/** What an accepted credential stands for. */
export type Principal = {
  /** Names the credential (never its secret): idempotency keys and rates live per credential. */
  credential: string;
  scopes: readonly Scope[];
  tenant: Tenant;
  /** It stands for whoever runs this process: `admin` is then for every account, and for the process itself. */
  isOperator: boolean;
};

/** The account of an authority's first start, and the only one of an agent. */
export const defaultAccountId = 'default';

/** The token in the file `admin.token`. */
export const adminTokenId = 'admin.token';

/** Whether a principal carries a scope. `admin` of one account does not include `ops`, which is of the process. */
export function allows({ scopes, isOperator }: Principal, scope: Scope): boolean {
  return scopes.includes(scope) || (scopes.includes('admin') && (isOperator || scope !== 'ops'));
}

/** Whether two principals may do the same, under the same name. */
export function isSamePrincipal(one: Principal, other: Principal): boolean {
  return (
    one.credential === other.credential &&
    one.isOperator === other.isOperator &&
    one.tenant.accountId === other.tenant.accountId &&
    one.tenant.productKey === other.tenant.productKey &&
    one.scopes.join() === other.scopes.join()
  );
}

/** Whether a credential reaches what is of this account, and of this product if it is of one. */
export function reaches(
  { tenant, isOperator }: Principal,
  { accountId, productKey }: { accountId: string | null; productKey: string | null },
): boolean {
  if (isOperator) return true;
  return tenant.accountId === accountId && (tenant.productKey === null || tenant.productKey === productKey);
}

/** What a credential may do. `admin` includes all the others, but of one account not `ops`. */
export type Scope = 'verify' | 'use' | 'manage' | 'coupons:read' | 'coupons:write' | 'sell' | 'ops' | 'admin';

export const scopes: readonly Scope[] = [
  'verify',
  'use',
  'manage',
  'coupons:read',
  'coupons:write',
  'sell',
  'ops',
  'admin',
];

export const productSecretScopes: readonly Scope[] = ['verify', 'use', 'manage'];
/** License keys too, on the routes that take an API key for them. */
export const apiKeyScopes: readonly Scope[] = ['coupons:read', 'coupons:write', ...productSecretScopes];

/** What a token for one product may carry: coupons belong to the account, and `admin` is for all there is. */
export const scopesOfOneProduct: readonly Scope[] = ['verify', 'use', 'manage', 'sell', 'ops'];

/** A token as it is kept: only its digest. Times are epoch ms. */
export type Token = {
  tokenId: string;
  scopes: readonly string[];
  /** On an agent: the id of the product. */
  productKey: string | null;
  accountId: string | null;
  label: string | null;
  createdAt: number;
  /** To the hour, and written some time after the use; null: never. */
  lastUsedAt: number | null;
  /** From then on it is refused; null: never. */
  expiresAt: number | null;
};
