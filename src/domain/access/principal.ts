import type { Scope } from './scope.ts';

/** Whose records a credential reaches: all of an account's products, or one of them (on an agent: its id). */
export type Reach = { accountId: string; productKey: string | null };

/** Restricts a list to what a credential reaches; undefined: to nothing. */
export type ReachFilter = { reach?: Reach | undefined };

/** What an accepted credential stands for. */
export type Principal = {
  /** Names the credential (never its secret): idempotency keys and rates live per credential. */
  credential: string;
  scopes: readonly Scope[];
  reach: Reach;
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
    one.reach.accountId === other.reach.accountId &&
    one.reach.productKey === other.reach.productKey &&
    one.scopes.join() === other.scopes.join()
  );
}

/** Whether a credential reaches what is of this account, and of this product if it is of one. */
export function reaches(
  { reach, isOperator }: Principal,
  { accountId, productKey }: { accountId: string | null; productKey: string | null },
): boolean {
  if (isOperator) return true;
  return reach.accountId === accountId && (reach.productKey === null || reach.productKey === productKey);
}
