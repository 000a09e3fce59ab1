import type { Principal } from '../../../src/domain/access/principal.ts';

export const adminPrincipal: Principal = {
  credential: 'token:admin',
  scopes: ['admin', 'verify'],
  tenant: { accountId: 'default', productKey: null },
  isOperator: true,
};
