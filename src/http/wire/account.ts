import { z } from 'zod';
import { formatDatetime } from '../../domain/datetime.ts';
import type { Account } from '../../domain/account.ts';
import type { AccountWithKey } from '../../service/authority/account.ts';
import { name, secret } from './common/kind.ts';
import { parameters, type ParameterSet } from './common/parameters.ts';

export type AccountObject = {
  account_id: string;
  name: string;
  api_key?: string | undefined;
  old_key_until?: string | undefined;
};

export const accountObject: z.ZodType<AccountObject> = z
  .object({
    account_id: z.string(),
    name: z.string(),
    api_key: z.string().optional(),
    old_key_until: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'Account' });

export const accountList: z.ZodType<{ accounts: AccountObject[] }> = z
  .object({
    accounts: z.array(accountObject),
  })
  .meta({ id: 'AccountList' });

export const accountParameters: ParameterSet<{ name: string; apiKey?: string | undefined }> = parameters(
  {
    name,
    api_key: secret.optional(),
  },
  { id: 'NewAccount' },
);

export function presentAccount({ accountId, name: itsName }: Account): AccountObject {
  return { account_id: accountId, name: itsName };
}

/** The account with its API key, shown on creation and roll only. */
export function presentAccountKey({ account, apiKey, oldUntil }: AccountWithKey): AccountObject {
  const until = oldUntil === null ? {} : { old_key_until: formatDatetime(oldUntil) };
  return { ...presentAccount(account), api_key: apiKey, ...until };
}
