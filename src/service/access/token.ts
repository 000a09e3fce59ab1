import {
  type Token,
  adminTokenId,
  defaultAccountId,
  productTokenScopes,
  type Scope,
} from '../../domain/access/principal.ts';
import {
  foreignProduct,
  notFound,
  unknownAccount,
  done,
  failWith,
  failWithFaults,
  type ParameterFault,
  type Result,
} from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import { newCredential, storeOldCredential } from './credential.ts';
import type { AuthorityReader, AuthorityTransaction } from '../tables.ts';

/** The secret is shown only once. */
export type TokenWithSecret = { token: Token; secret: string };

/** `oldUntil`: until when the old secret stays valid (epoch ms); null: it stopped. */
export type RotatedToken = TokenWithSecret & { oldUntil: number | null };

export type NewToken = {
  scopes: readonly Scope[];
  /** Null: every product of the account. */
  productKey: string | null;
  /** On an agent: the id of the product; null if no configured product has this key. */
  productId?: string | null | undefined;
  /** Null: the account of the product. Without a product: every account for `admin`, the default account otherwise. */
  accountId: string | null;
  label: string | null;
  /** Epoch ms; null: it does not expire. */
  expiresAt: number | null;
  /** An agent has only its configured products and one account. */
  isAgent: boolean;
};

export async function issueToken(
  transaction: AuthorityTransaction,
  command: NewToken,
  context: Context,
): Promise<Result<TokenWithSecret>> {
  const faults = await tokenFaults(transaction, command);
  if (command.expiresAt !== null && command.expiresAt <= context.now) {
    const detail = 'expires_at must lie in the future.';
    faults.push({ parameter: 'expires_at', code: 'past', detail });
  }
  if (faults.length > 0) return failWithFaults(faults);
  const { secret, digest } = newCredential('lk_tok', context);
  const token: Token = {
    tokenId: context.random.uuid(context.now),
    scopes: command.scopes,
    productKey: command.isAgent ? (command.productId ?? null) : command.productKey,
    accountId: await accountOf(transaction, command),
    label: command.label,
    createdAt: context.now,
    lastUsedAt: null,
    expiresAt: command.expiresAt,
  };
  await transaction.tokens.add(token, digest);
  return done({ token, secret });
}

/** The id of the token in the file `admin.token`. `node`: each of the nodes that share a store has its own file. */
function fileTokenIdOf(node?: string): string {
  return node === undefined ? adminTokenId : `${adminTokenId}:${node}`;
}

/** Accepts the token in the file `admin.token` of this node. */
export async function acceptAdminToken(
  { tokens }: AuthorityTransaction,
  { adminTokenDigest: digest, node }: { adminTokenDigest: string; node?: string },
  { now }: Context,
): Promise<void> {
  const tokenId = fileTokenIdOf(node);
  if ((await tokens.byDigest(digest)) !== null) return;
  // If the file was replaced, the previous token is revoked.
  await tokens.remove(tokenId);
  const rest = { productKey: null, accountId: null, label: null, lastUsedAt: null, expiresAt: null };
  await tokens.add({ tokenId, scopes: ['admin'], createdAt: now, ...rest }, digest);
}

/**
 * `accountId`: the only account whose tokens the caller may change; null: any account. `node`: the node that handles the
 * request; the tokens in the files of other nodes can be revoked, because those nodes may be gone. `productKey`: the key
 * of the token's product, for the audit log of an agent.
 */
export type RevokeToken = {
  tokenId: string;
  accountId: string | null;
  node?: string;
  productKey?: string | undefined;
};

export async function revokeToken(
  transaction: AuthorityTransaction,
  command: RevokeToken,
): Promise<Result<Token>> {
  const { tokenId } = command;
  const token = await ownToken(transaction, command);
  if (!token.ok) return token;
  await transaction.tokens.remove(tokenId);
  await transaction.oldCredentials.remove({ kind: 'token', id: tokenId });
  return token;
}

/** The token of a caller that is not in a file. */
async function ownToken(
  { tokens }: AuthorityReader,
  { tokenId, accountId, node }: RevokeToken,
): Promise<Result<Token>> {
  const token = await tokens.get(tokenId);
  if (token === null || (accountId !== null && token.accountId !== accountId)) return notFound('token');
  if (tokenId === fileTokenIdOf(node)) {
    // The next start would accept it again, because the file is still there.
    return failWith('token_of_the_file', 'Remove the file admin.token and restart: a new token is created.');
  }
  return done(token);
}

/** `oldUntil`: until when the old secret stays valid (epoch ms); null: it stops at once. */
export type RotateToken = RevokeToken & { oldUntil: number | null };

/** Gives a token another secret. Its rights, its label and its name in records stay. */
export async function rotateToken(
  transaction: AuthorityTransaction,
  command: RotateToken,
  context: Context,
): Promise<Result<RotatedToken>> {
  const { tokenId, oldUntil } = command;
  const token = await ownToken(transaction, command);
  const oldDigest = await transaction.tokens.digest(tokenId);
  if (!token.ok || oldDigest === null) return token.ok ? notFound('token') : token;
  const { expiresAt } = token.value;
  if (expiresAt !== null && expiresAt <= context.now) {
    const detail = 'The token has expired, and another secret would not be accepted: issue another token.';
    return failWithFaults([{ parameter: 'id', code: 'past', detail }]);
  }
  const { secret, digest } = newCredential('lk_tok', context);
  await transaction.tokens.setDigest(tokenId, digest);
  await storeOldCredential(transaction, { kind: 'token', id: tokenId }, oldDigest, oldUntil);
  return done({ token: token.value, secret, oldUntil });
}

async function accountOf(
  { products }: AuthorityReader,
  { accountId, productKey, scopes }: NewToken,
): Promise<string | null> {
  const product = productKey === null ? null : await products.get(productKey);
  return accountId ?? product?.accountId ?? (scopes.includes('admin') ? null : defaultAccountId);
}

async function tokenFaults(reader: AuthorityReader, command: NewToken): Promise<ParameterFault[]> {
  const { scopes, productKey, productId = null, accountId, isAgent } = command;
  const faults: ParameterFault[] = [];
  const add = (parameter: string, code: string, detail: string): void => {
    faults.push({ parameter, code, detail });
  };
  if (productKey !== null && !scopes.every((scope) => productTokenScopes.includes(scope))) {
    add('scopes', 'excluded', 'A token for one product carries neither coupon scopes nor admin.');
  }
  if (isAgent && scopes.includes('sell')) {
    add('scopes', 'excluded', 'An agent sells nothing: sell is for tokens of the authority.');
  }
  if (accountId !== null && !(await hasAccount(reader, command, accountId))) faults.push(unknownAccount);
  if (productKey === null) return faults;
  if (isAgent) {
    if (productId === null) {
      add('product_key', 'product_not_found', 'This agent is not configured with such a product.');
    }
    return faults;
  }
  const product = await reader.products.get(productKey);
  if (product?.accountId !== (await accountOf(reader, command))) faults.push(foreignProduct());
  return faults;
}

/** An agent has only the account of its upstream. */
async function hasAccount(
  reader: AuthorityReader,
  { isAgent }: NewToken,
  accountId: string,
): Promise<boolean> {
  if (isAgent) return accountId === defaultAccountId;
  return (await reader.accounts.get(accountId)) !== null;
}
