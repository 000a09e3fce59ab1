import { z } from 'zod';
import { type Token, scopes } from '../domain/access/principal.ts';
import { formatDatetime } from '../domain/time.ts';
import type { TokenWithSecret } from '../service/access/token.ts';
import type { AccountWithKey } from '../service/authority/catalogue.ts';
import { pageShape } from './page.ts';
import { name, secret, integer, instant, parameters, datetime, someOf, text } from './parameters.ts';
import { serializerOf } from './shape.ts';

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

/** The account with its API key, shown on creation and rotation only. */
export function serializeAccountKey({ account, apiKey, oldUntil }: AccountWithKey): AccountObject {
  const until = oldUntil === null ? {} : { old_key_until: formatDatetime(oldUntil) };
  return { ...serializeAccount(account), api_key: apiKey, ...until };
}

const longestS = 30 * 86_400;

/** How long the old secret stays valid, in seconds; undefined: it stops at once. */
export type Rotate = { keepOldS?: number | undefined };

/** How an API key or a secret is rotated. Unknown parameters are refused: a misspelt parameter would stop the old secret at once. */
export const rotateParameters = parameters(
  { keep_old_s: integer(1, longestS).optional() },
  { unknown: 'refused', id: 'Rotate' },
);

/** Until when the old secret stays valid, in epoch ms; null: it stops at once. */
export function oldSecretUntil({ keepOldS }: Rotate, now: number): number | null {
  return keepOldS === undefined ? null : now + keepOldS * 1000;
}

export const tokenObject = z
  .object({
    token_id: z.string(),
    token: z.string().optional(),
    scopes: z.array(z.string()).readonly(),
    product_key: z.string().nullable(),
    account_id: z.string().nullable(),
    label: z.string().nullable(),
    created_at: instant,
    last_used_at: instant.nullable(),
    expires_at: instant.nullable(),
    old_token_until: instant
      .optional()
      .describe('Until when the secret before a rotation stays valid; only in the response to the rotation.'),
  })
  .meta({ id: 'Token' });

export type TokenObject = z.infer<typeof tokenObject>;

export const tokenList = z.object({ tokens: z.array(tokenObject) }).meta({ id: 'TokenList' });

export const tokenParameters = parameters(
  {
    scopes: someOf(scopes),
    product_key: text(100).optional(),
    account_id: text(100).optional(),
    label: text(200).optional(),
    expires_at: datetime.optional(),
  },
  // A misspelt `expires_at` would make a token that never expires.
  { unknown: 'refused', id: 'NewToken' },
);

const writeToken = serializerOf(tokenObject.omit({ token: true, old_token_until: true }));

/** `products`: the products of an agent, whose tokens hold the id of a product. */
export function serializeToken(
  { productKey, ...same }: Token,
  products: { keyOf(id: string): string } | null,
): TokenObject {
  const key = productKey && (products?.keyOf(productKey) ?? productKey);
  return writeToken({ ...same, productKey: key });
}

/** The token with its secret, shown on issuing and rotating only. */
export function serializeTokenSecret(
  { token, secret: itsSecret, oldUntil = null }: TokenWithSecret & { oldUntil?: number | null },
  products: Parameters<typeof serializeToken>[1],
): TokenObject {
  const until = oldUntil === null ? {} : { old_token_until: formatDatetime(oldUntil) };
  return { ...serializeToken(token, products), token: itsSecret, ...until };
}

export const auditEntryObject = z
  .object({
    id: z.int(),
    actor: z.string(),
    act: z.string(),
    subject: z.string(),
    subject_name: z
      .string()
      .optional()
      .describe('The customer of a purchase, the name of a product or an account, the label of a token.'),
    detail: z.string(),
    at: instant,
  })
  .meta({ id: 'Act' });

export type AuditEntryObject = z.infer<typeof auditEntryObject>;

export const auditEntryList = z.object({ acts: z.array(auditEntryObject) }).meta({ id: 'ActList' });

/** Fits into the headers of a request even if each character takes 12 bytes. */
const textFilter = text(500);

/** `GET /admin/v1/audit`. */
export const auditEntryQuery = parameters({
  since: datetime.optional(),
  until: datetime.optional(),
  actor: textFilter.optional().describe('`console:*`: all that begin with `console:`.'),
  act: textFilter.optional().describe('`purchase.*`: all that begin with `purchase.`.'),
  subject: textFilter.optional(),
  ...pageShape('acts'),
});

export const serializeAuditEntry = serializerOf(auditEntryObject);
