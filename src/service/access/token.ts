import type { Token } from '../../domain/token.ts';
import { adminTokenId, defaultAccountId, scopesOfOneProduct, type Scope } from '../../domain/principal.ts';
import { done, refuse, refuseParameters, type ParameterFault, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { newSecret } from './secret.ts';
import type { Reader, Transaction } from '../tables.ts';

/** A token with its secret, which is shown only this once. */
export type TokenWithSecret = { token: Token; secret: string };

export type NewToken = {
  scopes: readonly Scope[];
  /** Null: the token reaches every product of its account. */
  productKey: string | null;
  /** Null: the account of the product, or the default one. */
  accountId: string | null;
  label: string | null;
  /** An agent's products are those that it is configured with; null on an authority, which keeps its own. */
  configuredProducts: readonly string[] | null;
};

/** Issues a token; its secret is kept as a digest alone. */
export function issueToken(
  transaction: Transaction,
  command: NewToken,
  context: Context,
): Result<TokenWithSecret> {
  const faults = tokenFaults(transaction, command);
  if (faults.length > 0) return refuseParameters(faults);
  const secret = newSecret('lk_tok', context.random);
  const token: Token = {
    tokenId: context.random.uuid(context.now),
    scopes: command.scopes,
    productKey: command.productKey,
    accountId: accountOf(transaction, command),
    label: command.label,
    createdAt: context.now,
  };
  transaction.tokens.add(token, context.digest(secret));
  return done({ token, secret });
}

/** Revokes a token; it stops at once. */
export function revokeToken(transaction: Transaction, { tokenId }: { tokenId: string }): Result<Token> {
  const token = transaction.tokens.get(tokenId);
  if (token === null) return refuse('token_not_found', 'There is no token with this id.');
  if (tokenId === adminTokenId) {
    // The next start would accept it again, because the file is still there.
    return refuse('token_of_the_file', 'Remove the file admin.token and start again: a new one is made.');
  }
  transaction.tokens.remove(tokenId);
  return done(token);
}

function accountOf({ products }: Reader, { accountId, productKey }: NewToken): string {
  const product = productKey === null ? null : products.get(productKey);
  return accountId ?? product?.accountId ?? defaultAccountId;
}

function tokenFaults(reader: Reader, command: NewToken): ParameterFault[] {
  const { scopes, productKey, accountId, configuredProducts } = command;
  const faults: ParameterFault[] = [];
  const add = (parameter: string, code: string, detail: string): void => {
    faults.push({ parameter, code, detail });
  };
  if (productKey !== null && !scopes.every((scope) => scopesOfOneProduct.includes(scope))) {
    add('scopes', 'excluded', 'A token for one product carries neither coupon scopes nor admin.');
  }
  if (accountId !== null && !hasAccount(reader, command, accountId)) {
    add('account_id', 'account_not_found', 'There is no such account.');
  }
  if (productKey === null) return faults;
  if (configuredProducts !== null) {
    if (!configuredProducts.includes(productKey)) {
      add('product_key', 'product_not_found', 'This agent is not configured with such a product.');
    }
  } else if (reader.products.get(productKey)?.accountId !== accountOf(reader, command)) {
    add('product_key', 'product_not_found', 'The account has no such product.');
  }
  return faults;
}

/** An agent has the one account of its upstream. */
function hasAccount(reader: Reader, { configuredProducts }: NewToken, accountId: string): boolean {
  if (configuredProducts !== null) return accountId === defaultAccountId;
  return reader.accounts.get(accountId) !== null;
}
