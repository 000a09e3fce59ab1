import type { Account } from '../../domain/account.ts';
import { done, refuse, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { newCredential } from '../access/secret.ts';
import type { AuthorityTransaction } from '../tables.ts';

/** An account with its API key, which is shown only this once. */
export type AccountWithKey = { account: Account; apiKey: string };

/** Adds an account and makes its API key. */
export async function addAccount(
  { accounts }: AuthorityTransaction,
  { name }: { name: string },
  context: Context,
): Promise<Result<AccountWithKey>> {
  const account = { accountId: context.random.uuid(context.now), name, createdAt: context.now };
  const { secret: apiKey, digest } = newCredential('lk_api', context);
  await accounts.add(account, digest);
  return done({ account, apiKey });
}

/** Replaces an account's API key; the old one stops working at once (specification 5, rule 2). */
export async function rollApiKey(
  { accounts }: AuthorityTransaction,
  { accountId }: { accountId: string },
  context: Context,
): Promise<Result<AccountWithKey>> {
  const account = await accounts.get(accountId);
  if (account === null) return refuse('account_not_found', 'There is no such account.');
  const { secret: apiKey, digest } = newCredential('lk_api', context);
  await accounts.setKeyDigest(accountId, digest);
  return done({ account, apiKey });
}
