import type { Scope } from './scope.ts';

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

/** The token in the file `admin.token`. */
export const adminTokenId = 'admin.token';

/** Whether a principal carries a scope. */
export function allows(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope) || principal.scopes.includes('admin');
}
