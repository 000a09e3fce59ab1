import type { Account } from '../../domain/account.ts';
import { notFound } from '../../domain/problem/not-found.ts';
import { done, refuseParameters, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import { keepOldCredential } from '../access/credential.ts';
import { newCredential, newSecret } from '../access/secret.ts';
import type { AuthorityTransaction } from '../tables.ts';

/** The API key is shown only once. `oldUntil`: until when the replaced key stays valid (epoch ms), if it does. */
export type AccountWithKey = { account: Account; apiKey: string; oldUntil: number | null };

export type NewAccount = {
  name: string;
  /** Null: generate one. Otherwise callers of an existing store already use it. */
  apiKey: string | null;
};

export async function addAccount(
  { accounts, oldCredentials }: AuthorityTransaction,
  command: NewAccount,
  context: Context,
): Promise<Result<AccountWithKey>> {
  const apiKey = command.apiKey ?? newSecret('lk_api', context.random);
  const digest = context.digest(apiKey);
  const holder = (await accounts.byKeyDigest(digest)) ?? (await oldCredentials.byDigest('api_key', digest));
  if (holder !== null) {
    const detail = 'The API key belongs to another account.';
    return refuseParameters([{ parameter: 'api_key', code: 'taken', detail }]);
  }
  const account = { accountId: context.random.uuid(context.now), name: command.name, createdAt: context.now };
  await accounts.add(account, digest);
  return done({ account, apiKey, oldUntil: null });
}

/** Replaces an account's API key. The old key ends at once (specification 5, rule 2) or at `oldUntil`. */
export async function rollApiKey(
  transaction: AuthorityTransaction,
  { accountId, oldUntil }: { accountId: string; oldUntil: number | null },
  context: Context,
): Promise<Result<AccountWithKey>> {
  const { accounts } = transaction;
  const account = await accounts.get(accountId);
  const oldDigest = await accounts.keyDigest(accountId);
  if (account === null || oldDigest === null) return notFound('account');
  const { secret: apiKey, digest } = newCredential('lk_api', context);
  await accounts.setKeyDigest(accountId, digest);
  await keepOldCredential(transaction, { kind: 'api_key', id: accountId }, oldDigest, oldUntil);
  return done({ account, apiKey, oldUntil });
}
