import {
  adminTokenId,
  defaultAccountId,
  type Principal,
  apiKeyScopes,
  licenseKeyScopes,
  productSecretScopes,
  scopes,
  type Scope,
  type Token,
} from '../../domain/access/principal.ts';
import type { AgentProduct } from '../../domain/agent/product.ts';
import type { SameDigest, Context, Random } from '../ports.ts';
import type { AuthorityReader, Awaitable, Reader, AuthorityTransaction, CredentialOwner } from '../tables.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { hourMs } from '../../domain/time.ts';

/** Which header a credential was sent in. */
export type CredentialKind = 'api_key' | 'product_secret' | 'bearer';

/** A credential of a request. The secret itself is not kept, only its digest. */
export type SentCredential = { readonly kind: CredentialKind; readonly digest: string };

/** What a secret gives access to. It may be cached until a commit changes credentials. */
export type KnownCredential = {
  principal: Principal;
  /** Null: the credential is not a token. */
  token: Token | null;
  /** From when the credential is no longer accepted (epoch ms); null: it does not expire. */
  endsAt: number | null;
};

export interface Credentials {
  /** Null if the secret is unknown. A token is accepted as any kind. */
  find(sent: SentCredential): Awaitable<KnownCredential | null>;
  /** Also notes that a token was used. `expired`: the token has expired; null: an old secret has expired. */
  use(knownCredential: KnownCredential): Principal | 'expired' | null;
}

/** Saves reading the same credential from the store at each request. */
export interface CredentialCache {
  cached(credentials: Credentials): Credentials;
}

/** Contains the kind because a secret that is accepted as one kind may not be accepted as another. */
export function cacheKeyOf({ kind, digest }: SentCredential): string {
  return `${kind} ${digest}`;
}

type CredentialParts = {
  reader: AuthorityReader;
  /** Epoch ms that have certainly been reached (`Clock.mark`), so that a clock that jumped ahead expires nothing. */
  verifiedNow: () => number;
  uses: TokenUses;
};

/** On the authority, credentials belong to its own accounts and products. */
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

/** A credential that is no token and does not expire. */
export function lasting(principal: Principal): KnownCredential {
  return { principal, token: null, endsAt: null };
}

/** The configured credentials of the upstream, as digests. */
export type UpstreamCredentials = {
  apiKeyDigest: string | null;
  products: readonly AgentProduct[];
};

/** On an agent, callers use the credentials of the upstream. `configured` is called for each request. */
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
      const knownCredential = await known.find(sent);
      const { productKey: productId = null } = knownCredential?.principal.tenant ?? {};
      // A token for a product that was removed from the configuration is not accepted.
      const isServed = productId === null || configured().products.some(({ id }) => id === productId);
      return isServed ? knownCredential : null;
    },
  };
}

/** On a holder, a credential is a token; the license key of a request is one as well (http/entry/admission.ts). */
export function tokenCredentials(parts: CredentialParts): Credentials {
  return credentials(parts, () => null);
}

const licensePrefix = 'license:';

/** The name of the credential that a license key is. `hash`: of the key. */
export function licenseCredential(hash: string): string {
  return `${licensePrefix}${hash}`;
}

/** The principal of a request whose credential is its license key, on a holder. */
export function licensePrincipal(credential: string): Principal {
  return {
    credential,
    scopes: licenseKeyScopes,
    tenant: { accountId: defaultAccountId, productKey: null },
    isOperator: false,
  };
}

export function isLicensePrincipal({ credential }: Principal): boolean {
  return credential.startsWith(licensePrefix);
}

/** Looks a secret up among the tokens first, then among the other credentials of the role. */
function credentials(
  { reader, verifiedNow, uses }: CredentialParts,
  find: (sent: {
    kind: Exclude<CredentialKind, 'bearer'>;
    digest: string;
  }) => Awaitable<KnownCredential | null>,
): Credentials {
  return {
    async find({ kind, digest }) {
      const token = await reader.tokens.byDigest(digest);
      if (token !== null) return { principal: tokenPrincipal(token), token, endsAt: token.expiresAt };
      const other = kind === 'bearer' ? null : await find({ kind, digest });
      return other ?? (await findRotated(reader, digest));
    },
    use({ principal, token, endsAt }) {
      const now = token === null && endsAt === null ? 0 : verifiedNow();
      if (endsAt !== null && endsAt <= now) return token === null ? null : 'expired';
      if (token !== null) uses.note(token, now);
      return principal;
    },
  };
}

/** A token under the secret that it had before it was rotated. */
async function findRotated(
  { tokens, oldCredentials }: AuthorityReader,
  digest: string,
): Promise<KnownCredential | null> {
  const old = await oldCredentials.byDigest('token', digest);
  const token = old === null ? null : await tokens.get(old.id);
  if (old === null || token === null) return null;
  return {
    principal: tokenPrincipal(token),
    token,
    endsAt: Math.min(old.until, token.expiresAt ?? Infinity),
  };
}

/** The principal of requests without a credential on a Unix socket (src/http/README.md, Credentials and scopes). */
export function socketPrincipal(
  path: string,
  grant: { scopes: readonly Scope[]; product: string | null },
): Principal {
  return {
    credential: `socket:${path}`,
    scopes: grant.scopes,
    tenant: { accountId: defaultAccountId, productKey: grant.product },
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

/** Names a product's secret in idempotency keys, rate limits and the audit log. */
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

/** The label of a token; null if it has none, is revoked, or the credential is not a token. */
export function credentialLabel(
  { tokens }: Pick<Reader, 'tokens'>,
  credential: string | null,
): string | null {
  if (credential === null || !credential.startsWith(tokenPrefix)) return null;
  return tokens.get(credential.slice(tokenPrefix.length))?.label ?? null;
}

function tokenPrincipal(token: Token): Principal {
  // Each node of an authority has its own admin token. All of them are the same admin, e.g. for idempotency keys.
  const id = token.tokenId.startsWith(`${adminTokenId}:`) ? adminTokenId : token.tokenId;
  return {
    credential: `${tokenPrefix}${id}`,
    scopes: scopes.filter((scope: Scope) => token.scopes.includes(scope)),
    tenant: { accountId: token.accountId ?? defaultAccountId, productKey: token.productKey },
    isOperator: token.accountId === null && token.scopes.includes('admin'),
  };
}

/**
 * Keeps a replaced credential valid until an instant (epoch ms), or ends it at once (null). In both cases, a
 * credential that was replaced earlier ends now.
 */
export async function storeOldCredential(
  { oldCredentials }: AuthorityTransaction,
  owner: CredentialOwner,
  digest: string,
  until: number | null,
): Promise<void> {
  if (until === null) await oldCredentials.remove(owner);
  else await oldCredentials.put({ ...owner, until }, digest);
}

/** `verifiedNow`: epoch ms that have certainly been reached. */
export async function pruneOldCredentials(
  { oldCredentials }: AuthorityTransaction,
  { verifiedNow }: { verifiedNow: number },
): Promise<Result<null>> {
  await oldCredentials.prune(verifiedNow);
  return done(null);
}

/** An authority accepts no shorter secret, because it could be guessed. An agent accepts what its upstream issued. */
export const minSecretLength = 16;

/** Lets people and secret scanners recognize the kind of secret. */
export type SecretPrefix = 'lk_api' | 'lk_prod' | 'lk_tok' | 'lk_log' | 'lks' | 'lks_in';

/** Makes a secret of 256 bits. */
export function newSecret(prefix: SecretPrefix, random: Random): string {
  return `${prefix}_${hexadecimal(random.bytes(32))}`;
}

/** The secret is shown once; its digest is stored. */
export function newCredential(
  prefix: SecretPrefix,
  { random, digest }: Pick<Context, 'random' | 'digest'>,
): { secret: string; digest: string } {
  const secret = newSecret(prefix, random);
  return { secret, digest: digest(secret) };
}

export function newIdentifier(random: Random): string {
  return hexadecimal(random.bytes(6));
}

export function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** `at`: the hour of the use (epoch ms). */
type TokenUse = { tokenId: string; at: number };

/** Collects which tokens were used in which hour, so that no request waits for a write. */
export class TokenUses {
  readonly #hours = new Map<string, number>();

  /** Does nothing if a use in the same hour is stored. `now`: epoch ms. */
  note({ tokenId, lastUsedAt, createdAt }: Token, now: number): void {
    // In the hour of the creation, the start of the hour would be before the creation.
    const hour = Math.max(now - (now % hourMs), createdAt);
    if (lastUsedAt === null || lastUsedAt < hour) this.#hours.set(tokenId, hour);
  }

  /** The uses since the last call. */
  take(): readonly TokenUse[] {
    const uses = [...this.#hours].map(([tokenId, at]) => ({ tokenId, at }));
    this.#hours.clear();
    return uses;
  }
}

export async function storeTokenUses(
  { tokens }: AuthorityTransaction,
  { uses }: { uses: readonly TokenUse[] },
): Promise<Result<null>> {
  for (const { tokenId, at } of uses) await tokens.setLastUsed(tokenId, at);
  return done(null);
}
