/** What a credential may do. `admin` includes all the others. */
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

export const apiKeyScopes: readonly Scope[] = ['coupons:read', 'coupons:write'];
export const productSecretScopes: readonly Scope[] = ['verify', 'use', 'manage'];

/** What a token for one product may carry: coupons belong to the account, and `admin` is for all there is. */
export const scopesOfOneProduct: readonly Scope[] = ['verify', 'use', 'manage', 'sell', 'ops'];
