import { expect, test } from 'vitest';
import {
  allows,
  type Principal,
  apiKeyScopes,
  productSecretScopes,
  scopes,
  type Scope,
} from '../../../src/domain/access/principal.ts';

type Credential = 'an API key' | 'a product secret' | 'a token for operations' | 'an administrator';

const scopesOf: Record<Credential, readonly Scope[]> = {
  'an API key': apiKeyScopes,
  'a product secret': productSecretScopes,
  'a token for operations': ['ops'],
  'an administrator': ['admin'],
};

const table: Record<Credential, Record<Scope, boolean>> = {
  // On license routes only of the API's first version, which takes an API key for them.
  'an API key': {
    verify: true,
    use: true,
    manage: true,
    'coupons:read': true,
    'coupons:write': true,
    sell: false,
    ops: false,
    admin: false,
  },
  'a product secret': {
    verify: true,
    use: true,
    manage: true,
    'coupons:read': false,
    'coupons:write': false,
    sell: false,
    ops: false,
    admin: false,
  },
  'a token for operations': {
    verify: false,
    use: false,
    manage: false,
    'coupons:read': false,
    'coupons:write': false,
    sell: false,
    ops: true,
    admin: false,
  },
  'an administrator': {
    verify: true,
    use: true,
    manage: true,
    'coupons:read': true,
    'coupons:write': true,
    sell: true,
    ops: true,
    admin: true,
  },
};

test.each(Object.keys(table) as Credential[])('%s allows the scopes of the contract', (credential) => {
  const principal: Principal = {
    credential,
    scopes: scopesOf[credential],
    tenant: { accountId: 'default', productKey: null },
    isOperator: true,
  };
  expect(Object.fromEntries(scopes.map((scope) => [scope, allows(principal, scope)]))).toEqual(
    table[credential],
  );
});
