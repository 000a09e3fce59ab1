/** The records that a credential can see: all products of an account, or one product (on an agent: its id). */
export type Tenant = { accountId: string; productKey: string | null };

/** Restricts a list to one tenant; undefined: no restriction. */
export type TenantFilter = { tenant?: Tenant | undefined };

/** The identity and the rights of an accepted credential. */
export type Principal = {
  /** The name of the credential, never its secret. Idempotency keys and rate limits belong to one credential. */
  credential: string;
  scopes: readonly Scope[];
  tenant: Tenant;
  /** The credential belongs to the operator of this process: `admin` then covers every account and the process itself. */
  isOperator: boolean;
};

/** The account of an authority's first start, and the only one of an agent. */
export const defaultAccountId = 'default';

/** The token in the file `admin.token`. */
export const adminTokenId = 'admin.token';

/**
 * Whether a principal has a scope (null: none is needed). `admin` of one account does not include `ops`, because `ops`
 * concerns the process.
 */
export function allows({ scopes, isOperator }: Principal, scope: Scope | null): boolean {
  if (scope === null) return true;
  return scopes.includes(scope) || (scopes.includes('admin') && (isOperator || scope !== 'ops'));
}

/** Whether a principal may see a record of an account, or of one product of the account. */
export function reaches(
  { tenant, isOperator }: Principal,
  { accountId, productKey }: { accountId: string | null; productKey: string | null },
): boolean {
  if (isOperator) return true;
  return tenant.accountId === accountId && (tenant.productKey === null || tenant.productKey === productKey);
}

/** What a credential may do. `admin` includes all other scopes, except as `allows` says. */
export const scopes = [
  'verify',
  'use',
  'manage',
  'coupons:read',
  'coupons:write',
  'sell',
  'ops',
  'admin',
] as const;

export type Scope = (typeof scopes)[number];

export const productSecretScopes: readonly Scope[] = ['verify', 'use', 'manage'];
/** Some license routes accept an API key, too. */
export const apiKeyScopes: readonly Scope[] = ['coupons:read', 'coupons:write', ...productSecretScopes];

/** On a holder, the license key itself is a credential. */
export const licenseKeyScopes: readonly Scope[] = ['verify', 'use'];

/** The scopes that a token for one product may have. Coupons belong to the account; `admin` is not limited to a product. */
export const productTokenScopes: readonly Scope[] = ['verify', 'use', 'manage', 'sell', 'ops'];

/** A stored token; the store has only a digest of its secret. Times are epoch ms. */
export type Token = {
  tokenId: string;
  scopes: readonly string[];
  /** On an agent: the id of the product. */
  productKey: string | null;
  accountId: string | null;
  label: string | null;
  createdAt: number;
  /** Rounded to the hour, and written some time after the use; null: never. */
  lastUsedAt: number | null;
  /** The token is rejected from this time on; null: never. */
  expiresAt: number | null;
};
