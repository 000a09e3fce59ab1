import { z } from 'zod';
import { formatDatetime } from '../domain/time.ts';
import type { AccountWithKey } from '../service/authority/catalogue.ts';
import { name, secret, integer, instant, parameters } from './parameters.ts';
import { serializerOf } from './server/shape.ts';

export const accountObject = z
  .object({
    account_id: z.string(),
    name: z.string(),
    api_key: z.string().optional(),
    old_key_until: instant.optional(),
  })
  .meta({ id: 'Account' });

export type AccountObject = z.infer<typeof accountObject>;

export const accountList = z.object({ accounts: z.array(accountObject) }).meta({ id: 'AccountList' });

export const accountParameters = parameters(
  {
    name,
    api_key: secret.optional(),
  },
  { id: 'NewAccount' },
);

export const serializeAccount = serializerOf(accountObject.omit({ api_key: true, old_key_until: true }));

/** The account with its API key, shown on creation and roll only. */
export function serializeAccountKey({ account, apiKey, oldUntil }: AccountWithKey): AccountObject {
  const until = oldUntil === null ? {} : { old_key_until: formatDatetime(oldUntil) };
  return { ...serializeAccount(account), api_key: apiKey, ...until };
}

const longestS = 30 * 86_400;

/** How long the old secret stays valid, in seconds; undefined: it stops at once. */
export type Roll = { keepOldS?: number | undefined };

/** How an API key or a secret is rolled. Unknown parameters are refused: a misspelt parameter would stop the old secret at once. */
export const rollParameters = parameters(
  { keep_old_s: integer(1, longestS).optional() },
  { unknown: 'refused', id: 'Roll' },
);

/** Until when the old secret stays valid, in epoch ms; null: it stops at once. */
export function oldSecretUntil({ keepOldS }: Roll, now: number): number | null {
  return keepOldS === undefined ? null : now + keepOldS * 1000;
}
