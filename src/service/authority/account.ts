import type { Account } from '../../domain/account.ts';
import { done, refuse, refuseParameters, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import { newCredential, newSecret } from '../access/secret.ts';
import type { AuthorityTransaction } from '../tables.ts';

/** An account with its API key, which is shown only this once. */
export type AccountWithKey = { account: Account; apiKey: string };

export type NewAccount = {
  name: string;
  /** Null: one is made. Otherwise the one that callers of an existing store use already. */
  apiKey: string | null;
};

/** Adds an account and its API key. */
export async function addAccount(
  { accounts }: AuthorityTransaction,
  command: NewAccount,
  context: Context,
): Promise<Result<AccountWithKey>> {
  const apiKey = command.apiKey ?? newSecret('lk_api', context.random);
  const digest = context.digest(apiKey);
  if ((await accounts.byKeyDigest(digest)) !== null) {
    const detail = 'The API key belongs to another account.';
    return refuseParameters([{ parameter: 'api_key', code: 'taken', detail }]);
  }
  const account = { accountId: context.random.uuid(context.now), name: command.name, createdAt: context.now };
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
