import {
  adminTokenId,
  defaultAccountId,
  type Principal,
  apiKeyScopes,
  productSecretScopes,
  scopes,
  type Scope,
  type Token,
} from '../../domain/access/principal.ts';
import type { Product } from '../../domain/agent/product.ts';
import type { SameDigest } from '../ports.ts';
import type { AuthorityReader, Awaitable, Reader, AuthorityTransaction } from '../tables.ts';
import type { TokenUses } from './token.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { CredentialOwner } from './tables.ts';

/** Which header a credential was sent in. */
export type CredentialKind = 'api_key' | 'product_secret' | 'bearer';

/** A credential as it was sent: its secret is known by its digest alone. */
export type SentCredential = { readonly kind: CredentialKind; readonly digest: string };

/** What a secret is accepted for. It may be cached until a commit changes credentials. */
export type ResolvedCredential = {
  principal: Principal;
  /** Null: it is no token. */
  token: Token | null;
  /** The first instant at which it is not accepted any more (epoch ms); null: it is accepted for ever. */
  endsAt: number | null;
};

/** Finds the principal of a secret. */
export interface Credentials {
  /** Null when the secret is not known. A token is accepted under every kind. */
  find(sent: SentCredential): Awaitable<ResolvedCredential | null>;
  /** Whom a grant stands for now, and notes that a token was used; `expired` is a token's, null an old secret's. */
  use(resolvedCredential: ResolvedCredential): Principal | 'expired' | null;
}

/** Saves reading the same credential from the store at each request. */
export interface CredentialCache {
  cached(credentials: Credentials): Credentials;
}

/** Contains the kind because a secret that is accepted as one kind may not be accepted as another. */
export function cacheKeyOf({ kind, digest }: SentCredential): string {
  return `${kind} ${digest}`;
}

/** What a process knows credentials by. */
type CredentialParts = {
  reader: AuthorityReader;
  /** Epoch ms that have certainly been reached (`Clock.mark`): a clock that jumped ahead lets nothing expire. */
  verifiedNow: () => number;
  uses: TokenUses;
};

/** On the authority: its own accounts and products. */
export function authorityCredentials(parts: CredentialParts): Credentials {
  const { accounts, products, oldCredentials } = parts.reader;
  return credentials(parts, async ({ kind, digest }) => {
    if (kind === 'api_key') {
      const account = await accounts.byKeyDigest(digest);
      if (account !== null) return lasting(accountPrincipal(account.accountId));
      const old = await oldCredentials.byDigest(kind, digest);
      return old === null ? null : { ...lasting(accountPrincipal(old.id)), endsAt: old.until };
    }
    const current = await products.bySecretDigest(digest);
    if (current !== null) return lasting(productPrincipal(current.accountId, current.productKey));
    const old = await oldCredentials.byDigest(kind, digest);
    const product = old === null ? null : await products.get(old.id);
    if (old === null || product === null) return null;
    return { ...lasting(productPrincipal(product.accountId, product.productKey)), endsAt: old.until };
  });
}

/** The grant of a principal that no token stands for and no time ends. */
export function lasting(principal: Principal): ResolvedCredential {
  return { principal, token: null, endsAt: null };
}

/** The upstream's credentials as an agent is configured with them, by their digests. */
export type UpstreamCredentials = {
  apiKeyDigest: string | null;
  products: readonly Product[];
};

/** On an agent: the upstream's credentials, as configured. `configured` is asked anew on each call. */
export function agentCredentials(
  { isSame, ...parts }: CredentialParts & { isSame: SameDigest },
  configured: () => UpstreamCredentials,
): Credentials {
  const known = credentials(parts, ({ kind, digest }) => {
    const { apiKeyDigest, products } = configured();
    if (kind === 'api_key') {
      return apiKeyDigest !== null && isSame(digest, apiKeyDigest)
        ? lasting(accountPrincipal(defaultAccountId))
        : null;
    }
    const product = products.find(({ secretDigest }) => isSame(digest, secretDigest));
    return product === undefined ? null : lasting(productPrincipal(defaultAccountId, product.id));
  });
  return {
    ...known,
    async find(sent) {
      const resolvedCredential = await known.find(sent);
      const { productKey: productId = null } = resolvedCredential?.principal.tenant ?? {};
      // The token of a product that was taken out of the configuration rests with its secret.
      const isServed = productId === null || configured().products.some(({ id }) => id === productId);
      return isServed ? resolvedCredential : null;
    },
  };
}

/** Looks a secret up among the tokens first, then where the role keeps those of its kind of header. */
function credentials(
  { reader, verifiedNow, uses }: CredentialParts,
  find: (sent: {
    kind: Exclude<CredentialKind, 'bearer'>;
    digest: string;
  }) => Awaitable<ResolvedCredential | null>,
): Credentials {
  return {
    async find({ kind, digest }) {
      const token = await reader.tokens.byDigest(digest);
      if (token !== null) return { principal: tokenPrincipal(token), token, endsAt: token.expiresAt };
      return kind === 'bearer' ? null : await find({ kind, digest });
    },
    use({ principal, token, endsAt }) {
      const now = token === null && endsAt === null ? 0 : verifiedNow();
      if (endsAt !== null && endsAt <= now) return token === null ? null : 'expired';
      if (token !== null) uses.note(token, now);
      return principal;
    },
  };
}

/** The principal of whoever opens a socket without a credential (src/http/README.md, Credentials and scopes). */
export function socketPrincipal(
  path: string,
  given: { scopes: readonly Scope[]; product: string | null },
): Principal {
  return {
    credential: `socket:${path}`,
    scopes: given.scopes,
    tenant: { accountId: defaultAccountId, productKey: given.product },
    isOperator: false,
  };
}

function accountPrincipal(accountId: string): Principal {
  return {
    credential: `account:${accountId}`,
    scopes: apiKeyScopes,
    tenant: { accountId, productKey: null },
    isOperator: false,
  };
}

/** The name under which a product's secret is known: for idempotency keys, rates and the audit. */
export function productCredential(productKey: string): string {
  return `product:${productKey}`;
}

function productPrincipal(accountId: string, productKey: string): Principal {
  return {
    credential: productCredential(productKey),
    scopes: productSecretScopes,
    tenant: { accountId, productKey },
    isOperator: false,
  };
}

const tokenPrefix = 'token:';

/** What people call the token that a credential's name stands for; null where they call it nothing, or it is gone. */
export function credentialLabel(
  { tokens }: Pick<Reader, 'tokens'>,
  credential: string | null,
): string | null {
  if (credential === null || !credential.startsWith(tokenPrefix)) return null;
  return tokens.get(credential.slice(tokenPrefix.length))?.label ?? null;
}

function tokenPrincipal(token: Token): Principal {
  // Each copy of an authority has an admin token of its own: who asks again at another copy is the same admin.
  const id = token.tokenId.startsWith(`${adminTokenId}:`) ? adminTokenId : token.tokenId;
  return {
    credential: `${tokenPrefix}${id}`,
    scopes: scopes.filter((scope: Scope) => token.scopes.includes(scope)),
    tenant: { accountId: token.accountId ?? defaultAccountId, productKey: token.productKey },
    isOperator: token.accountId === null && token.scopes.includes('admin'),
  };
}

/**
 * Lets a credential that is being rolled go on until an instant (epoch ms), or stops it at once (null). One
 * that was rolled before and still went on is stopped either way.
 */
export async function keepOldCredential(
  { oldCredentials }: AuthorityTransaction,
  owner: CredentialOwner,
  digest: string,
  until: number | null,
): Promise<void> {
  if (until === null) await oldCredentials.remove(owner);
  else await oldCredentials.put({ ...owner, until }, digest);
}

/** Removes old credentials that have stopped. `verifiedNow`: epoch ms that have certainly been reached. */
export async function pruneOldCredentials(
  { oldCredentials }: AuthorityTransaction,
  { verifiedNow }: { verifiedNow: number },
): Promise<Result<null>> {
  await oldCredentials.prune(verifiedNow);
  return done(null);
}
