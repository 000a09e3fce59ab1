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
