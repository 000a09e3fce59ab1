/** What a credential may do. `admin` includes all the others. */
export type Scope = 'verify' | 'use' | 'manage' | 'coupons:read' | 'coupons:write' | 'ops' | 'admin';

export const scopes: readonly Scope[] = [
  'verify',
  'use',
  'manage',
  'coupons:read',
  'coupons:write',
  'ops',
  'admin',
];

/** Whose records a credential reaches: all of an account's products, or one of them. */
export type Reach = { accountId: string; productKey: string | null };

/** What an accepted credential stands for. */
export type Principal = {
  /** Names the credential (never its secret): idempotency keys and rates live per credential. */
  credential: string;
  scopes: readonly Scope[];
  reach: Reach;
};

/** The account of an authority's first start, and the only one of an agent. */
export const defaultAccountId = 'default';

export const apiKeyScopes: readonly Scope[] = ['coupons:read', 'coupons:write'];
export const productSecretScopes: readonly Scope[] = ['verify', 'use', 'manage'];

/** What a token for one product may carry: coupons belong to the account, and `admin` is for all there is. */
export const scopesOfOneProduct: readonly Scope[] = ['verify', 'use', 'manage', 'ops'];

/** The token in the file `admin.token`. */
export const adminTokenId = 'admin.token';

/** Whether a principal carries a scope. */
export function allows(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope) || principal.scopes.includes('admin');
}
