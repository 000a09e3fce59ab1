import type { Account } from '../../domain/account.ts';
import { done, refuse, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { newSecret } from '../access/secret.ts';
import type { Transaction } from '../tables.ts';

/** An account with its API key, which is shown only this once. */
export type AccountWithKey = { account: Account; apiKey: string };

/** Adds an account and makes its API key. */
export function addAccount(
  transaction: Transaction,
  { name }: { name: string },
  context: Context,
): Result<AccountWithKey> {
  const apiKey = newSecret('lk_api', context.random);
  const account = { accountId: context.random.uuid(context.now), name, createdAt: context.now };
  transaction.accounts.add(account, context.digest(apiKey));
  return done({ account, apiKey });
}

/** Gives an account a new API key; the old one stops at once (specification 5, rule 2). */
export function rollApiKey(
  transaction: Transaction,
  { accountId }: { accountId: string },
  context: Context,
): Result<AccountWithKey> {
  const account = transaction.accounts.get(accountId);
  if (account === null) return refuse('account_not_found', 'There is no such account.');
  const apiKey = newSecret('lk_api', context.random);
  transaction.accounts.setKeyDigest(accountId, context.digest(apiKey));
  return done({ account, apiKey });
}
