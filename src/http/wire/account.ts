import { z } from 'zod';
import type { Account } from '../../domain/account.ts';
import type { AccountWithKey } from '../../service/authority/account.ts';
import { name, secret } from './kind.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type AccountObject = { account_id: string; name: string; api_key?: string | undefined };

export const accountObject: z.ZodType<AccountObject> = z.object({
  account_id: z.string(),
  name: z.string(),
  api_key: z.string().optional(),
});

export const accountList: z.ZodType<{ accounts: AccountObject[] }> = z.object({
  accounts: z.array(accountObject),
});

export const accountParameters: ParameterSet<{ name: string; apiKey?: string | undefined }> = parameters({
  name,
  api_key: secret.optional(),
});

export function presentAccount({ accountId, name: itsName }: Account): AccountObject {
  return { account_id: accountId, name: itsName };
}

/** The account with its API key, shown on creation and roll only. */
export function presentAccountKey({ account, apiKey }: AccountWithKey): AccountObject {
  return { ...presentAccount(account), api_key: apiKey };
}
