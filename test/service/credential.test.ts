import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { productSecretScopes } from '../../src/domain/access/principal.ts';
import {
  agentCredentials,
  authorityCredentials,
  socketPrincipal,
  type CredentialKind,
  type Credentials,
  TokenUses,
} from '../../src/service/access/credential.ts';
import { type NewToken } from '../../src/service/access/token.ts';
import { AgentHarness, hour, minute, Harness, valueOf } from '../support/harness/service-harness.ts';

const digest = (secret: string): string => createHash('sha256').update(secret).digest('hex');
const isSame = (left: string, right: string): boolean => left === right;
const kinds: readonly CredentialKind[] = ['api_key', 'product_secret', 'bearer'];

/** The principal of a secret. */
async function principalOf(credentials: Credentials, kind: CredentialKind, secret: string) {
  const knownCredential = await credentials.find({ kind, digest: digest(secret) });
  return knownCredential === null ? null : credentials.use(knownCredential);
}

/** An authority with the accounts `default` and another one, and the product `press` of the first. */
async function createAuthority() {
  const harness = new Harness();
  const start = { adminTokenDigest: digest('admin'), place: 'here', apiKeyDigest: digest('api') };
  valueOf(await harness.writer.write('startAuthority', start));
  const product = {
    name: 'Press',
    recurring: false,
    accountId: 'default',
    productKey: 'press',
    secret: null,
  };
  const { secret } = valueOf(await harness.writer.write('addProduct', product));
  const { account } = valueOf(await harness.writer.write('addAccount', { name: 'Other', apiKey: null }));
  return { harness, secret, other: account.accountId, ...over(harness) };
}

/** Issues, revokes and resolves tokens on a store. */
function over(harness: Harness) {
  const uses = new TokenUses();
  const issue = (changes: Partial<NewToken> = {}) =>
    harness.writer.write('issueToken', {
      scopes: ['verify'],
      productKey: null,
      accountId: null,
      label: null,
      expiresAt: null,
      isAgent: false,
      ...changes,
    });
  const faultsOf = async (changes: Partial<NewToken>): Promise<string[]> => {
    const result = await issue(changes);
    if (result.ok) return [];
    return result.problem.errors?.map(({ parameter, code }) => `${parameter}: ${code}`) ?? [];
  };
  const who = (kind: CredentialKind, secret: string) =>
    principalOf(
      authorityCredentials({ reader: harness.store, verifiedNow: () => harness.now, uses }),
      kind,
      secret,
    );
  return { issue, faultsOf, who, uses };
}

describe('a token', () => {
  it('a token is accepted in every header with its scopes', async () => {
    const { harness, issue, who } = await createAuthority();
    await using _ = harness;
    const { token, secret } = valueOf(await issue({ scopes: ['use', 'verify'], label: 'till' }));
    expect(secret).toMatch(/^lk_tok_[0-9a-f]{64}$/);
    expect(token).toMatchObject({ label: 'till', createdAt: harness.now, accountId: 'default' });
    for (const kind of kinds) {
      expect(await who(kind, secret)).toEqual({
        credential: `token:${token.tokenId}`,
        scopes: ['verify', 'use'],
        tenant: { accountId: 'default', productKey: null },
        isOperator: false,
      });
    }
    expect(await who('bearer', `${secret}x`)).toBeNull();
  });

  it('a token belongs to the requested account, else to the account of its product, else to the default account', async () => {
    const { harness, issue, who, other } = await createAuthority();
    await using _ = harness;
    const theirs = { name: 'x', recurring: false, accountId: other, productKey: 'brush', secret: null };
    valueOf(await harness.writer.write('addProduct', theirs));
    const accountOf = async (changes: Partial<NewToken>) => valueOf(await issue(changes)).token.accountId;
    expect(await accountOf({ accountId: other })).toBe(other);
    expect(await accountOf({ productKey: 'brush' })).toBe(other);
    expect(await accountOf({})).toBe('default');
    const { secret } = valueOf(await issue({ accountId: other }));
    expect(await who('bearer', secret)).toMatchObject({ tenant: { accountId: other } });
  });

  it('a token for one product has neither coupon scopes nor admin', async () => {
    const { harness, faultsOf } = await createAuthority();
    await using _ = harness;
    const productKey = 'press';
    expect(await faultsOf({ productKey, scopes: ['verify', 'use', 'manage', 'sell', 'ops'] })).toEqual([]);
    for (const scope of ['coupons:read', 'coupons:write', 'admin'] as const) {
      expect(await faultsOf({ productKey, scopes: ['verify', scope] })).toEqual(['scopes: excluded']);
      expect(await faultsOf({ scopes: ['verify', scope] })).toEqual([]);
    }
  });

  it('a token needs an existing account and a product of that account', async () => {
    const { harness, faultsOf, other } = await createAuthority();
    await using _ = harness;
    expect(await faultsOf({ accountId: 'none' })).toEqual(['account_id: account_not_found']);
    expect(await faultsOf({ productKey: 'none' })).toEqual(['product_key: product_not_found']);
    expect(await faultsOf({ productKey: 'press', accountId: other })).toEqual([
      'product_key: product_not_found',
    ]);
  });

  it('a token of an agent needs a configured product', async () => {
    await using harness = new AgentHarness();
    await harness.start();
    const { faultsOf } = over(harness);
    const isAgent = true;
    expect(await faultsOf({ isAgent, productKey: 'brush', productId: 'id-of-brush' })).toEqual([]);
    expect(await faultsOf({ isAgent, productKey: 'press', productId: null })).toEqual([
      'product_key: product_not_found',
    ]);
    expect(await faultsOf({ isAgent, scopes: ['sell'] })).toEqual(['scopes: excluded']);
    expect(await faultsOf({ isAgent, accountId: 'default' })).toEqual([]);
    expect(await faultsOf({ isAgent, accountId: 'other' })).toEqual(['account_id: account_not_found']);
  });

  it('a revoked token is rejected at once', async () => {
    const { harness, issue, who } = await createAuthority();
    await using _ = harness;
    const { token, secret } = valueOf(await issue());
    expect(
      valueOf(await harness.writer.write('revokeToken', { tokenId: token.tokenId, accountId: null })),
    ).toEqual(token);
    expect(await who('bearer', secret)).toBeNull();
    expect(
      await harness.writer.write('revokeToken', { tokenId: token.tokenId, accountId: null }),
    ).toMatchObject({
      problem: { code: 'token_not_found' },
    });
  });

  it('a rotated token keeps its id and its rights, and the old secret works until its end', async () => {
    const { harness, issue, who } = await createAuthority();
    await using _ = harness;
    const { token, secret } = valueOf(await issue({ expiresAt: harness.now + 9 * hour }));
    const rotate = async (oldUntil: number | null): Promise<string> => {
      const command = { tokenId: token.tokenId, accountId: null, oldUntil };
      const rotated = valueOf(await harness.writer.write('rotateToken', command));
      expect(rotated).toMatchObject({ token, oldUntil });
      return rotated.secret;
    };
    const second = await rotate(harness.now + hour);
    const principal = { credential: `token:${token.tokenId}`, scopes: ['verify'] };
    for (const each of [secret, second]) expect(await who('bearer', each)).toMatchObject(principal);
    harness.pass(hour);
    expect([await who('bearer', secret), await who('bearer', second)]).toMatchObject(['expired', principal]);
    const third = await rotate(null);
    expect(await who('bearer', second)).toBeNull();
    expect(await who('bearer', third)).toMatchObject(principal);
    await rotate(harness.now + 20 * hour);
    harness.pass(9 * hour);
    expect(await who('bearer', third)).toBe('expired');
    expect(
      await harness.writer.write('rotateToken', { tokenId: token.tokenId, accountId: null, oldUntil: null }),
    ).toMatchObject({ problem: { errors: [{ parameter: 'id', code: 'past' }] } });
    await harness.writer.write('revokeToken', { tokenId: token.tokenId, accountId: null });
    expect(await who('bearer', third)).toBeNull();
  });

  it('an expired token is reported as expired in every header', async () => {
    const { harness, issue, who } = await createAuthority();
    await using _ = harness;
    const { secret } = valueOf(await issue({ expiresAt: harness.now + hour }));
    harness.pass(hour - 1);
    expect(await who('bearer', secret)).toMatchObject({ scopes: ['verify'] });
    harness.pass(1);
    for (const kind of kinds) expect(await who(kind, secret)).toBe('expired');
  });

  it('a token cannot be issued with an expiry in the past', async () => {
    const { harness, faultsOf } = await createAuthority();
    await using _ = harness;
    expect(await faultsOf({ expiresAt: harness.now })).toEqual(['expires_at: past']);
    expect(await faultsOf({ expiresAt: harness.now + 1 })).toEqual([]);
  });

  it('the hour of the last use of a token is stored, at most once an hour', async () => {
    const { harness, issue, who, uses } = await createAuthority();
    await using _ = harness;
    const { token, secret } = valueOf(await issue());
    const keep = async (): Promise<number> => {
      const taken = uses.take();
      valueOf(await harness.writer.write('storeTokenUses', { uses: taken }));
      return taken.length;
    };
    expect([await keep(), harness.store.tokens.get(token.tokenId)?.lastUsedAt]).toEqual([0, null]);
    harness.pass(90 * minute);
    for (let count = 0; count < 3; count += 1) await who('bearer', secret);
    const used = harness.now - 30 * minute;
    expect([await keep(), harness.store.tokens.get(token.tokenId)?.lastUsedAt]).toEqual([1, used]);
    harness.pass(29 * minute);
    await who('bearer', secret);
    expect(await keep()).toBe(0);
    harness.pass(minute);
    await who('bearer', secret);
    expect([await keep(), harness.store.tokens.get(token.tokenId)?.lastUsedAt]).toEqual([1, used + hour]);
  });

  it('the last use of a token is never before its creation', async () => {
    const { harness, issue, who, uses } = await createAuthority();
    await using _ = harness;
    harness.pass(90 * minute);
    const { token, secret } = valueOf(await issue());
    const keep = async (): Promise<number> => {
      const taken = uses.take();
      valueOf(await harness.writer.write('storeTokenUses', { uses: taken }));
      return taken.length;
    };
    await who('bearer', secret);
    expect([await keep(), harness.store.tokens.get(token.tokenId)?.lastUsedAt]).toEqual([1, token.createdAt]);
    harness.pass(29 * minute);
    await who('bearer', secret);
    expect(await keep()).toBe(0);
    harness.pass(minute);
    await who('bearer', secret);
    expect([await keep(), harness.store.tokens.get(token.tokenId)?.lastUsedAt]).toEqual([1, harness.now]);
  });

  it('a rejected token is not stored as used', async () => {
    const { harness, issue, who, uses } = await createAuthority();
    await using _ = harness;
    const { secret } = valueOf(await issue({ expiresAt: harness.now + 1 }));
    harness.pass(1);
    await who('bearer', secret);
    expect(uses.take()).toEqual([]);
  });

  it('the token in the file cannot be revoked, because the next start would accept it again', async () => {
    const { harness, who } = await createAuthority();
    await using _ = harness;
    expect(
      await harness.writer.write('revokeToken', { tokenId: 'admin.token', accountId: null }),
    ).toMatchObject({
      problem: { code: 'token_of_the_file' },
    });
    expect(await who('bearer', 'admin')).toMatchObject({ scopes: ['admin'] });
  });
});

describe('a credential of an authority', () => {
  it('a credential of an authority is accepted only in its own header', async () => {
    const { harness, secret, who } = await createAuthority();
    await using _ = harness;
    const account = { credential: 'account:default', tenant: { accountId: 'default', productKey: null } };
    expect(await who('api_key', 'api')).toMatchObject(account);
    const product = { credential: 'product:press', tenant: { accountId: 'default', productKey: 'press' } };
    expect(await who('product_secret', secret)).toMatchObject(product);
    for (const kind of kinds) {
      expect((await who(kind, 'api')) === null).toBe(kind !== 'api_key');
      expect((await who(kind, secret)) === null).toBe(kind !== 'product_secret');
    }
  });

  it('a rotated credential replaces the previous credential', async () => {
    const { harness, secret, who } = await createAuthority();
    await using _ = harness;
    const { apiKey } = valueOf(
      await harness.writer.write('rotateApiKey', { accountId: 'default', oldUntil: null }),
    );
    expect(await who('api_key', apiKey)).toMatchObject({ credential: 'account:default' });
    expect(await who('api_key', 'api')).toBeNull();
    const rotated = valueOf(
      await harness.writer.write('rotateProductSecret', { productKey: 'press', oldUntil: null }),
    );
    expect(await who('product_secret', rotated.secret)).toMatchObject({ credential: 'product:press' });
    expect(await who('product_secret', secret)).toBeNull();
  });
});

describe('a credential that is rotated with an overlap', () => {
  it('an old credential works until the end of the overlap, with the same name as the new one', async () => {
    const { harness, secret, who } = await createAuthority();
    await using _ = harness;
    const oldUntil = harness.now + hour;
    const { writer } = harness;
    const { apiKey } = valueOf(await writer.write('rotateApiKey', { accountId: 'default', oldUntil }));
    const rotated = valueOf(await writer.write('rotateProductSecret', { productKey: 'press', oldUntil }));
    const all = async () => ({
      key: [await who('api_key', 'api'), await who('api_key', apiKey)],
      secret: [await who('product_secret', secret), await who('product_secret', rotated.secret)],
    });
    harness.pass(hour - 1);
    const before = await all();
    expect(before.key[0]).toMatchObject({ credential: 'account:default' });
    expect(before.secret[0]).toMatchObject({ credential: 'product:press', tenant: { productKey: 'press' } });
    expect([before.key[0], before.secret[0]]).toEqual([before.key[1], before.secret[1]]);
    harness.pass(1);
    const after = await all();
    expect([after.key[0], after.secret[0]]).toEqual([null, null]);
    expect([after.key[1], after.secret[1]]).toEqual([before.key[1], before.secret[1]]);
  });

  it('an old credential is accepted only in its own header', async () => {
    const { harness, secret, who } = await createAuthority();
    await using _ = harness;
    const oldUntil = harness.now + hour;
    await harness.writer.write('rotateApiKey', { accountId: 'default', oldUntil });
    await harness.writer.write('rotateProductSecret', { productKey: 'press', oldUntil });
    for (const kind of kinds) {
      expect((await who(kind, 'api')) === null).toBe(kind !== 'api_key');
      expect((await who(kind, secret)) === null).toBe(kind !== 'product_secret');
    }
  });

  it('an old credential ends when the credential is rotated again, with or without an overlap', async () => {
    const { harness, who } = await createAuthority();
    await using _ = harness;
    const rotate = async (oldUntil: number | null) =>
      valueOf(await harness.writer.write('rotateApiKey', { accountId: 'default', oldUntil })).apiKey;
    const later = harness.now + hour;
    const [second, third] = [await rotate(later), await rotate(later)];
    const known = async (...keys: string[]) =>
      (await Promise.all(keys.map((key) => who('api_key', key)))).map((found) => found !== null);
    expect(await known('api', second, third)).toEqual([false, true, true]);
    const fourth = await rotate(null);
    expect(await known('api', second, third, fourth)).toEqual([false, false, false, true]);
  });

  it('an old credential cannot be given to another owner during the overlap or before it is pruned', async () => {
    const { harness, secret } = await createAuthority();
    await using _ = harness;
    const oldUntil = harness.now + hour;
    await harness.writer.write('rotateApiKey', { accountId: 'default', oldUntil });
    await harness.writer.write('rotateProductSecret', { productKey: 'press', oldUntil });
    const product = { name: 'X', recurring: false, accountId: 'default', productKey: null, secret };
    const take = async () => [
      (await harness.writer.write('addAccount', { name: 'X', apiKey: 'api' })).ok,
      (await harness.writer.write('addProduct', product)).ok,
    ];
    expect(await take()).toEqual([false, false]);
    await harness.writer.write('pruneOldCredentials', { verifiedNow: oldUntil - 1 });
    expect(await take()).toEqual([false, false]);
    await harness.writer.write('pruneOldCredentials', { verifiedNow: oldUntil });
    expect(await take()).toEqual([true, true]);
  });
});

describe('a credential of an agent', () => {
  it('an agent accepts its currently configured credentials, only in their own headers', async () => {
    await using harness = new Harness();
    const press = { id: 'press', productKey: 'press-2', secretDigest: digest('secret') };
    const brush = { id: 'brush', productKey: 'press', secretDigest: digest('brush') };
    let configured = { apiKeyDigest: digest('api') as string | null, products: [brush, press] };
    const credentials = agentCredentials(
      { reader: harness.store, isSame, verifiedNow: () => harness.now, uses: new TokenUses() },
      () => configured,
    );
    const who = (kind: CredentialKind, secret: string) => principalOf(credentials, kind, secret);
    expect(await who('api_key', 'api')).toMatchObject({
      credential: 'account:default',
      tenant: { accountId: 'default', productKey: null },
      isOperator: false,
    });
    expect(await who('product_secret', 'secret')).toEqual({
      credential: 'product:press',
      scopes: productSecretScopes,
      tenant: { accountId: 'default', productKey: 'press' },
      isOperator: false,
    });
    for (const kind of kinds) {
      expect((await who(kind, 'api')) === null).toBe(kind !== 'api_key');
      expect((await who(kind, 'secret')) === null).toBe(kind !== 'product_secret');
      expect(await who(kind, 'other')).toBeNull();
    }
    configured = { apiKeyDigest: null, products: [] };
    expect([await who('api_key', 'api'), await who('product_secret', 'secret')]).toEqual([null, null]);
  });
});

it('an agent accepts the token of a product only while that product is configured', async () => {
  await using harness = new Harness();
  const press = { id: 'press', productKey: 'press-2', secretDigest: digest('secret') };
  let products = [press];
  const credentials = agentCredentials(
    { reader: harness.store, isSame, verifiedNow: () => harness.now, uses: new TokenUses() },
    () => ({ apiKeyDigest: null, products }),
  );
  const { issue } = over(harness);
  const isAgent = true;
  const bound = valueOf(await issue({ productKey: 'press-2', productId: 'press', isAgent }));
  const free = valueOf(await issue({ isAgent }));
  const accepted = async (): Promise<boolean[]> =>
    Promise.all(
      [bound, free].map(async ({ secret }) => (await principalOf(credentials, 'bearer', secret)) !== null),
    );
  expect(await accepted()).toEqual([true, true]);
  products = [];
  expect(await accepted()).toEqual([false, true]);
  products = [press];
  expect(await accepted()).toEqual([true, true]);
});

describe('a socket without a credential', () => {
  it('a caller without a credential has the rights of the socket', () => {
    expect(socketPrincipal('/run/a.sock', { scopes: ['verify'], product: 'press' })).toEqual({
      credential: 'socket:/run/a.sock',
      scopes: ['verify'],
      tenant: { accountId: 'default', productKey: 'press' },
      isOperator: false,
    });
  });
});
