import { describe, expect, it } from 'vitest';
import {
  allows,
  isSamePrincipal,
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

describe('a grant', () => {
  it.each(Object.keys(table) as Credential[])('of %s allows what the contract says', (credential) => {
    const grant: Principal = {
      credential,
      scopes: scopesOf[credential],
      tenant: { accountId: 'default', productKey: null },
      isOperator: true,
    };
    expect(Object.fromEntries(scopes.map((scope) => [scope, allows(grant, scope)]))).toEqual(
      table[credential],
    );
  });
});

describe('two principals', () => {
  const one: Principal = {
    credential: 'token:1',
    scopes: ['verify', 'use'],
    tenant: { accountId: 'default', productKey: null },
    isOperator: false,
  };

  it.each<[string, Partial<Principal>, boolean]>([
    ['are the same where all is the same', { scopes: ['verify', 'use'] }, true],
    ['differ by their credential', { credential: 'token:2' }, false],
    ['differ by their scopes', { scopes: ['verify'] }, false],
    ['differ by their account', { tenant: { accountId: 'other', productKey: null } }, false],
    ['differ by their product', { tenant: { accountId: 'default', productKey: 'P' } }, false],
    ['differ where one is the operator', { isOperator: true }, false],
  ])('%s', (_, change, expected) => {
    expect(isSamePrincipal(one, { ...one, ...change })).toBe(expected);
  });
});
